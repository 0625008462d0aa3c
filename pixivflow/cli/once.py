"""`pixivflow once` and `pixivflow get`: works collected now, outside any slot."""

from typing import Final

import click
import msgspec

from actors.once import Waited
from pixivflow.cli.addresses import AddressRefused, parse_work
from pixivflow.cli.asking import ask
from pixivflow.cli.context import base_config
from pixivflow.cli.outcomes import (
    CellStory,
    Result,
    Roots,
    exit_code,
    file_lines,
    refusal_of,
    result_of,
    told,
)
from pixivflow.cli.output import plain
from pixivflow.cli.waiting import order_and_wait, wait_option
from pixivflow.ledger.reports import WorkFiles
from protocol.reasons import Reason
from protocol.works import WorkKind, WorkRef

MOST_WORKS: Final = 1000


@click.command("once")
@click.argument("targets", nargs=-1, metavar="[TARGET]...")
@click.option("--no-deliver", is_flag=True, help="Store the works only.")
@wait_option
@click.pass_context
def once_command(ctx: click.Context, targets: tuple[str, ...], wait_s: float, *, no_deliver: bool) -> None:
    """Collect and deliver for targets now, outside the timetable.

    Without TARGET all enabled ones are run. What is taken counts as posted, as in a slot. Ends with 0, with 1 when
    all failed, 3 when some did, 4 when something is still open after the wait.
    """
    params = {"targets": list(dict.fromkeys(targets)), "deliver": not no_deliver}
    waited = order_and_wait(ctx, "cells.once", params, wait_s)
    stories = _stories(waited)
    for story in stories:
        click.echo("\n".join(told(story, _roots(ctx), waited.logins_needed)))
    ctx.exit(exit_code([result_of(story.cell) for story in stories]))


@click.command("get")
@click.argument("works", nargs=-1, required=True, metavar="URL|ID...")
@wait_option
@click.pass_context
def get_command(ctx: click.Context, works: tuple[str, ...], wait_s: float) -> None:
    """Store single works, named by id or address.

    Nothing filters them and nothing is delivered. A work that is stored already is shown with its files.
    """
    ids = _ids(works)
    waited = order_and_wait(ctx, "cells.get_works", {"works": ids}, wait_s)
    results = [
        _show_work(ctx, work, story, waited) for work, story in zip(ids, _stories(waited), strict=True)
    ]
    ctx.exit(exit_code(results))


def _ids(works: tuple[str, ...]) -> list[int]:
    refused: list[str] = []
    ids: dict[int, None] = {}
    for text in works:
        try:
            ids[parse_work(text)] = None
        except AddressRefused as error:
            refused.append(str(error))
    if len(ids) > MOST_WORKS:
        refused.append(f"{len(ids)} works are too many for one command, at most {MOST_WORKS}")
    if refused:
        raise click.BadParameter("\n  ".join(refused), param_hint="URL|ID")
    return list(ids)


def _show_work(ctx: click.Context, work_id: int, story: CellStory, waited: Waited) -> Result:
    result = result_of(story.cell)
    named = msgspec.structs.replace(story, cell=msgspec.structs.replace(story.cell, target_id=str(work_id)))
    if result is Result.NOTHING and story.cell.reason_code == Reason.DUPLICATE_EXHAUSTED:
        return _show_stored(ctx, work_id)
    if result is Result.NOTHING:
        click.echo(f"{work_id}: not stored: {refusal_of(story.cell)}")
        return Result.FAILED
    click.echo("\n".join(told(named, _roots(ctx), waited.logins_needed)))
    return result


def _show_stored(ctx: click.Context, work_id: int) -> Result:
    """Tell of a work that the scan found to be had already: here, or being stored by another cell."""
    ref = WorkRef(WorkKind.ILLUSTRATION, work_id)
    found = msgspec.convert(ask(ctx, "works.files", {"work": str(ref)}), WorkFiles | None)
    if found is None:
        click.echo(f"{work_id}: another cell is storing it now; see: pixivflow cells --open")
        return Result.OPEN
    lines = (f"{work_id}: stored already: {plain(found.title)}", f"  {ref.url}")
    click.echo("\n".join((*lines, *file_lines(found.files, _roots(ctx)))))
    return Result.DONE


def _stories(waited: Waited) -> tuple[CellStory, ...]:
    return msgspec.convert(waited.cells, tuple[CellStory, ...])


def _roots(ctx: click.Context) -> Roots:
    storage = base_config(ctx).storage
    return {"download": storage.download_dir, "state": storage.state_dir}
