import base64
import hashlib
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from pixivflow.simulator.faults import Fault
from pixivflow.simulator.server import SimulatorOptions

CLIENT = {
    "client_id": "MOBrBDS8blbauoSck0ZfDbtuzpyT",
    "client_secret": "lsACyCD94FhDUtGTXi3QzcFE2uU1hqtDaKeqrdwj",
}
VERIFIER = "a-verifier-of-forty-three-characters-in-all"


async def post(driver, **form):
    return await driver.http.post(f"{driver.simulator.oauth_url}/auth/token", data=CLIENT | form)


async def obtain_code(driver):
    challenge = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
    url = f"{driver.simulator.api_url}/web/v1/login?code_challenge={challenge}&code_challenge_method=S256"
    hop = await driver.http.get(url + "&client=pixiv-android")
    last = await driver.http.get(driver.simulator.api_url + hop.headers["location"])
    target = last.headers["location"]
    assert target.startswith("pixiv://account/login?code=")
    assert target.endswith("&via=login")
    return parse_qs(urlsplit(target).query)["code"][0]


async def exchange(driver, code, verifier=VERIFIER):
    return await post(driver, grant_type="authorization_code", code=code, code_verifier=verifier)


def refused(answer):
    body = answer.json()
    return (
        answer.status_code,
        body["errors"]["system"]["message"],
        body["errors"]["system"]["code"],
        body["error"],
    )


async def test_a_refresh_answers_both_copies(driver):
    body = await driver.sign_in()

    assert body["response"]["access_token"] == body["access_token"]
    assert body["response"]["user"]["id"] == "90000001"
    assert body["expires_in"] == 3600
    assert body["refresh_token"] == driver.simulator.refresh_token


async def test_the_refresh_token_stays_unless_rotation_is_on(drive):
    async with drive() as driver:
        before = driver.simulator.refresh_token
        await driver.sign_in()
        assert driver.simulator.refresh_token == before


async def test_with_rotation_the_old_refresh_token_dies(drive):
    async with drive(options=SimulatorOptions(rotate_refresh_tokens=True)) as driver:
        old = driver.simulator.refresh_token
        body = await driver.sign_in()
        answer = await post(driver, grant_type="refresh_token", refresh_token=old)

    assert body["refresh_token"] != old
    assert refused(answer) == (400, "Invalid refresh token", 1508, "invalid_grant")


async def test_a_lost_answer_can_lose_the_rotated_token(drive):
    async with drive(options=SimulatorOptions(rotate_refresh_tokens=True)) as driver:
        old = driver.simulator.refresh_token
        driver.simulator.faults.add(Fault("/auth/token", "lose_answer"))
        with pytest.raises(httpx.TransportError):
            await driver.sign_in()
        answer = await post(driver, grant_type="refresh_token", refresh_token=old)

    assert refused(answer)[1] == "Invalid refresh token"


async def test_a_revoked_refresh_token_is_refused(driver):
    driver.simulator.accounts.revoke()
    answer = await post(driver, grant_type="refresh_token", refresh_token=driver.simulator.refresh_token)

    assert refused(answer) == (400, "Invalid refresh token", 1508, "invalid_grant")


async def test_a_code_with_its_verifier_signs_in(driver):
    answer = await exchange(driver, await obtain_code(driver))

    assert answer.status_code == 200
    assert answer.json()["refresh_token"] == driver.simulator.refresh_token


async def test_a_code_is_good_once(driver):
    code = await obtain_code(driver)
    await exchange(driver, code)

    assert refused(await exchange(driver, code))[1:] == (
        "The authorization code has expired",
        1508,
        "invalid_grant",
    )


async def test_a_code_is_good_for_half_a_minute(driver):
    code = await obtain_code(driver)
    driver.wall.now += timedelta(seconds=30)

    assert refused(await exchange(driver, code))[1] == "The authorization code has expired"


async def test_a_wrong_verifier_is_refused(driver):
    answer = await exchange(driver, await obtain_code(driver), "another-verifier")

    assert refused(answer)[::3] == (400, "invalid_grant")


async def test_an_unknown_grant_is_an_invalid_request(driver):
    answer = await post(driver, grant_type="wish")

    assert refused(answer) == (
        400, "Invalid grant_type parameter or parameter missing", 1508, "invalid_request",
    )  # fmt: skip


async def test_a_password_is_no_way_in(driver):
    assert refused(await post(driver, grant_type="password"))[3] == "unauthorized_client"


async def test_an_unknown_client_is_refused(driver):
    assert refused(await post(driver, client_id="somebody"))[3] == "invalid_client"


async def test_the_sign_in_page_wants_a_challenge(driver):
    assert (await driver.http.get(f"{driver.simulator.api_url}/web/v1/login")).status_code == 400
