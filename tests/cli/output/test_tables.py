from rich.console import Console

from tests.recorded import assert_values
from tiered.cli.output import tables
from tiered.cli.output.tables import change, print_table, seconds, size


def lines(headers: tuple[str, ...], *rows: tuple[object, ...]) -> list[str]:
    console = Console(width=80, markup=False, highlight=False)
    with console.capture() as capture:
        print_table(console, "title", headers, rows)
    return [line.rstrip() for line in capture.get().splitlines() if line.strip()]


def test_bytes_are_shown_in_a_unit_that_fits() -> None:
    assert [size(n) for n in (0, 1023, 1024, 1536, 5 << 20, 3 << 30, 7 << 40)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "1.5 KiB",
        "5.0 MiB",
        "3.0 GiB",
        "7.0 TiB",
    ]


def test_times_are_shown_in_seconds_or_milliseconds() -> None:
    assert (seconds(1.234), seconds(0.01234)) == ("1.23 s", "12.34 ms")


def test_a_change_has_its_sign_and_share_and_is_empty_where_there_is_none() -> None:
    assert change(1000, 900) == "-100 (-10%)"
    assert change(0, 3) == "+3"
    assert change(5, 5) == ""


def test_numbers_stand_on_the_right_with_separators() -> None:
    shown = lines(("name", "n"), ("a", 1), ("b", 1_234_567))
    assert shown[-2].endswith("        1")
    assert shown[-1].endswith("1,234,567")


def test_names_that_look_like_markup_or_hold_control_characters_are_shown_as_they_are() -> None:
    shown = "\n".join(lines(("name",), ("[red]x[/red]",), ("a\x1b[0m\nb",)))
    assert "[red]x[/red]" in shown
    assert r"a\x1b[0m\nb" in shown


def test_cells_and_tables_are_recorded() -> None:
    def table(*args: object, **more: object) -> None:
        console = Console(file=None, width=60, markup=False, highlight=False, color_system=None)
        with console.capture() as said:
            tables.print_table(console, *args, **more)  # type: ignore[arg-type]  # of any kind
        print("\n".join(f"| {line.rstrip()}" for line in said.get().splitlines()))

    assert_values(__file__, {**vars(tables), "table": table})
