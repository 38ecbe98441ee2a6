"""The coordinator's log."""

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentstead.coordinator import logs


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Callable[[], None]]]:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    stops: list[Callable[[], None]] = []

    def begin(**options: object) -> Callable[[], None]:
        stop = logs.start_log(tmp_path / "logs" / "c.log", **options)  # type: ignore[arg-type]
        stops.append(stop)
        return stop

    yield begin
    for stop in stops:
        stop()


def entries(tmp_path: Path) -> list[str]:
    return logs.tail(tmp_path / "logs" / "c.log")


def test_an_entry_has_time_level_logger_and_text(tmp_path: Path, start: Callable[..., Callable[[], None]]) -> None:
    stop = start()
    logging.getLogger("agentstead.x").warning("hello %s", "there")
    stop()
    (entry,) = entries(tmp_path)
    assert entry.endswith("Z WARNING agentstead.x: hello there")


def test_the_file_and_its_folder_are_the_owners_alone(tmp_path: Path, start: Callable[..., Callable[[], None]]) -> None:
    start()()
    assert (tmp_path / "logs").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "logs" / "c.log").stat().st_mode & 0o077 == 0


def test_what_is_below_the_level_is_not_written(tmp_path: Path, start: Callable[..., Callable[[], None]]) -> None:
    stop = start(level="warning")
    logging.getLogger("a").info("quiet")
    logging.getLogger("a").error("loud")
    stop()
    assert [entry.split(": ")[-1] for entry in entries(tmp_path)] == ["loud"]


def test_libraries_that_tell_of_every_request_are_held_to_warnings(
    tmp_path: Path, start: Callable[..., Callable[[], None]]
) -> None:
    stop = start()
    logging.getLogger("mcp.server.streamable_http").info("a session")
    stop()
    assert entries(tmp_path) == []


def test_a_secret_is_taken_out_of_text_arguments_and_traceback(
    tmp_path: Path, start: Callable[..., Callable[[], None]]
) -> None:
    stop = start(redact=lambda text: text.replace("hunter2", "[redacted]"))
    try:
        raise ValueError("the password is hunter2")
    except ValueError:
        logging.getLogger("a").exception("with %s", "hunter2")
    stop()
    text = (tmp_path / "logs" / "c.log").read_text()
    assert "hunter2" not in text
    assert text.count("[redacted]") >= 2


def test_a_redaction_can_be_given_later(tmp_path: Path, start: Callable[..., Callable[[], None]]) -> None:
    redaction = logs.Redaction(lambda text: text.replace("shape", "*"))
    stop = start(redact=redaction)
    logging.getLogger("a").warning("shape name")
    redaction.use(lambda text: text.replace("name", "*"))
    logging.getLogger("a").warning("shape name")
    stop()
    assert [entry.split(": ")[1] for entry in entries(tmp_path)] == ["* name", "shape *"]


def test_a_traceback_is_one_entry_and_a_forged_line_is_none(
    tmp_path: Path, start: Callable[..., Callable[[], None]]
) -> None:
    stop = start()
    logging.getLogger("a").error("first\n2026-01-01T00:00:00.000Z ERROR forged: second")
    stop()
    assert len(entries(tmp_path)) == 1


def test_an_uncaught_error_of_a_thread_is_written(tmp_path: Path, start: Callable[..., Callable[[], None]]) -> None:
    stop = start()
    thread = threading.Thread(target=lambda: 1 // 0, name="doomed")
    thread.start()
    thread.join()
    stop()
    (entry,) = entries(tmp_path)
    assert "doomed" in entry
    assert "ZeroDivisionError" in entry


def test_files_are_put_aside_and_read_oldest_first(tmp_path: Path, start: Callable[..., Callable[[], None]]) -> None:
    stop = start(max_bytes=150, files=3)
    for number in range(12):
        logging.getLogger("a").warning("entry %02d", number)
    stop()
    assert len(list((tmp_path / "logs").iterdir())) == 4
    numbers = [int(entry[-2:]) for entry in entries(tmp_path)]
    assert numbers == list(range(numbers[0], 12))
    assert len(numbers) > 4


def test_the_tail_is_bounded_and_filtered(tmp_path: Path, start: Callable[..., Callable[[], None]]) -> None:
    stop = start()
    for number in range(5):
        logging.getLogger("a").log(logging.ERROR if number % 2 else logging.INFO, "n%d", number)
    stop()
    path = tmp_path / "logs" / "c.log"
    assert [entry[-2:] for entry in logs.tail(path, entries=2)] == ["n3", "n4"]
    assert [entry[-2:] for entry in logs.tail(path, least="error")] == ["n1", "n3"]
    assert logs.tail(tmp_path / "missing.log") == []


def test_following_goes_on_over_a_rotation(tmp_path: Path) -> None:
    path = tmp_path / "c.log"
    path.write_text(line("INFO", "before"))
    pauses: list[int] = []

    def pause() -> None:
        pauses.append(1)
        if len(pauses) == 1:
            append(path, line("INFO", "one"), line("ERROR", "two"))
        elif len(pauses) == 2:
            path.rename(tmp_path / "c.log.1")
            path.write_text(line("ERROR", "three"))

    seen = list(logs.follow(path, least="error", until=lambda: len(pauses) > 2, pause=pause))
    assert [each.split(": ")[1] for each in seen] == ["two", "three"]


def test_following_waits_for_a_log_that_is_not_there_yet(tmp_path: Path) -> None:
    path = tmp_path / "c.log"
    pauses: list[int] = []

    def pause() -> None:
        pauses.append(1)
        if len(pauses) == 2:
            path.write_text(line("INFO", "born"))

    seen = list(logs.follow(path, until=lambda: len(pauses) > 3, pause=pause))
    assert [each.split(": ")[1] for each in seen] == ["born"]


def line(level: str, text: str) -> str:
    return f"2026-01-01T00:00:00.000Z {level} a: {text}\n"


def append(path: Path, *lines: str) -> None:
    with path.open("a") as file:
        file.writelines(lines)
