"""Uses the Python package as a test would: every valid document is read by its model, nearly every one that breaks its schema is refused."""

import json
import sys

from conformant_fixtures import Factory, documents, invalid, kinds, load, model
from pydantic import ValidationError

assert len(kinds()) > 50, kinds()
due = refused = 0
for kind in kinds():
    assert len(load(kind)) == len(documents(kind)), kind
    for wrong in invalid(kind):
        if not wrong.breaks_schema:
            continue
        due += 1
        try:
            model(kind).model_validate(wrong.document)
        except ValidationError:
            refused += 1
# What remains is what the generator does not say in models: lists of names in two languages, ints for floats, free fields.
assert refused > 0.85 * due, (refused, due)

factory = Factory("chat/message", seed=int(sys.argv[1]))
made = [factory.document(body="hi") for _ in range(20)]
assert len({one["sid"] for one in made}) == 20
for one in made:
    assert one["sid"] in one["url"], "identifiers stay together"
message = Factory(model("chat/message"), seed=1).make(body="hi")
assert type(message) is model("chat/message") and message.body == "hi"
for wrong in ({"bdy": "hi"}, {"bodies": "hi", "body": "hi"}):
    try:
        factory.make(**wrong)
    except TypeError as error:
        assert "chat/message has no field" in str(error) and "did you mean 'body'?" in str(error), error
    else:
        raise AssertionError("an unknown field is refused")
try:
    Factory("chat/service").document(limits={"channel_members": 1, "user_channels": 2, "nope": 3})
except TypeError as error:
    assert "chat/service has no field 'limits.nope'" in str(error), error
else:
    raise AssertionError("an unknown field of an inner object is refused")
for kind in kinds():
    assert type(Factory(kind).make()) is model(kind), kind
print(json.dumps(made))
print(f"   python: {len(kinds())} kinds, {refused} of {due} documents that break a schema are refused by a model", file=sys.stderr)
