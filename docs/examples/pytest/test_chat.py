"""What the client does when the service is busy. `IMPATIENT=1 pytest` shows what a worse client would see."""

from chat import Chat


def test_a_busy_service_is_asked_again(world, script):
    script("chat/create-service", "429:1", calls="1")
    service = Chat(world).create_service("Support")
    assert service["friendly_name"] == "Support"
    assert [one["sid"] for one in Chat(world).services()] == [service["sid"]]


def test_a_service_that_is_away_is_waited_for(world, script):
    script("chat/read-services", "503:1", calls="1-2")
    assert Chat(world).services() == []
