"""Run the command line as `python -m agentstead.cli`."""

import sys

from agentstead.cli.main import main

sys.exit(main())
