import pytest
from tests.browser import DESKTOP, PHONE
from tests.monitor.world import PASSWORD

@pytest.mark.timeout(300)
@pytest.mark.parametrize("lang", ["en", "ar"])
def test_pictures(house, watchers, lang):
    who = watchers.come(lang, expected_statuses=frozenset({404}))
    for wide, v in (("wide", DESKTOP), ("narrow", PHONE)):
        who.page.set_viewport_size(v); who.page.screenshot(path=f"/tmp/pics/{lang}-{wide}-00signin.png", full_page=True)
    who.sign_in(house.world.make_operator(), PASSWORD)
    house.world.watch.look_once()
    for n, (name, path) in enumerate(house.paths(), 1):
        who.open(path)
        for wide, v in (("wide", DESKTOP), ("narrow", PHONE)):
            who.page.emulate_media(color_scheme="dark" if (n % 3 == 0) else "light")
            who.page.set_viewport_size(v)
            who.page.screenshot(path=f"/tmp/pics/{lang}-{wide}-{n:02}{name.replace(' ','_').replace(',','')}.png", full_page=True)
