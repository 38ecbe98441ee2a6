"""The command line of `agentstead serve`, read without a parser's weight. Standard library only."""

from agentstead.coordinator.places import home_path

USAGE = "usage: agentstead serve NAME [--home DIR] [--toolset SET] [--standalone]"


class Serve:
    """What is to be served: one server of one home, with the tools of a toolset, here or by the coordinator."""

    __slots__ = ("home", "name", "standalone", "toolset")

    def __init__(self, name: str, *, home: str, toolset: str, standalone: bool) -> None:
        self.name = name
        self.home = home
        self.toolset = toolset
        self.standalone = standalone


def serve_arguments(argv: "list[str]") -> Serve | None:
    """Read what follows `serve`; None for what is not to be understood."""
    options = {"--home": "", "--toolset": "core"}
    names: list[str] = []
    standalone = False
    rest = iter(argv)
    for word in rest:
        option, equals, value = word.partition("=")
        if word == "--standalone":
            standalone = True
        elif option in options:
            options[option] = value if equals else next(rest, "")
        else:
            names.append(word)
    if len(names) != 1 or names[0].startswith("-") or not options["--toolset"]:
        return None
    return Serve(names[0], home=home_path(options["--home"]), toolset=options["--toolset"], standalone=standalone)
