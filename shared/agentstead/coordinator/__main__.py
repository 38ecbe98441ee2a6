"""`python -m agentstead.coordinator run|serve`: what a shim starts, and both programs where no script is installed."""

import sys

from agentstead.coordinator.launch import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
