"""A coordinator, a shim and a standalone server over a small fake home: `coordinated.py run|serve ...`."""

import sys
from pathlib import Path


def main() -> int:
    from agentstead.coordinator import launch

    program = (sys.executable, str(Path(__file__).resolve()))
    if sys.argv[1:2] == ["serve"] and "--standalone" not in sys.argv:
        return launch.main(sys.argv[1:], program=program)
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.fakes.fake_home import open_fake

    return launch.main(sys.argv[1:], opener=open_fake, program=program)


if __name__ == "__main__":
    sys.exit(main())
