"""An account that Pixiv refuses: the daemon stays, its slots wait, a login lets them go on."""

from pathlib import Path

from pixivflow.pixiv.credentials import StoredToken, TokenStore, fingerprint
from tests.crash.audit import audit
from tests.crash.stage import Daemon, Plan, open_stage

WRONG = "no-such-token"


async def _login_needed(daemon: Daemon) -> None:
    async def needed() -> bool:
        return bool((await daemon.ask("daemon.status"))["logins_needed"] == ["main"])

    await daemon.stage.until("the login is reported", needed)


async def test_a_login_lets_a_waiting_slot_go_on(tmp_path: Path) -> None:
    async with open_stage(tmp_path, Plan(token=WRONG)) as stage:
        daemon = await stage.start_ready()
        slot = await daemon.trigger("k")
        await _login_needed(daemon)
        [detail] = (await daemon.slot(slot))["cells"]
        assert (detail["cell"]["status"], detail["cell"]["attempts"]) == ("pending", 0)

        good = StoredToken(stage.simulator.refresh_token, 1, configured_fingerprint=fingerprint(WRONG))
        TokenStore(stage.state / "tokens").save("main", good)
        assert await daemon.ask("accounts.check") == {"logins_needed": []}
        assert await daemon.slot_ends(slot) == "success"
        assert await daemon.stop() == 0
        audit(stage)


async def test_a_first_login_lets_a_waiting_slot_go_on(tmp_path: Path) -> None:
    async with open_stage(tmp_path, Plan(token="")) as stage:
        daemon = await stage.start_ready()
        slot = await daemon.trigger("k")
        TokenStore(stage.state / "tokens").save("main", StoredToken(stage.simulator.refresh_token, 1))
        assert await daemon.ask("accounts.check") == {"logins_needed": []}
        assert await daemon.slot_ends(slot) == "success"


async def test_a_corrected_token_in_the_file_lets_a_waiting_slot_go_on(tmp_path: Path) -> None:
    async with open_stage(tmp_path, Plan(token=WRONG)) as stage:
        daemon = await stage.start_ready()
        slot = await daemon.trigger("k")
        await _login_needed(daemon)
        assert await daemon.stop() == 0
        stage.write_config(token=stage.simulator.refresh_token)
        after = await stage.start_ready()
        assert await after.slot_ends(slot) == "success"
        assert await after.stop() == 0
        audit(stage)
