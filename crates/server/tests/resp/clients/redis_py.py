# redis-py with its default settings, and with the older protocol: PORT is the argument.
import sys

import redis

port = int(sys.argv[1])
for number, options in enumerate([{}, {"protocol": 2}, {"db": 3, "client_name": "me"}, {"decode_responses": True}]):
    client = redis.Redis(port=port, **options)
    assert client.ping() is True
    key = f"py{number}"
    assert client.execute_command("CL.THROTTLE", key, 1, 1, 3600) == [0, 2, 1, -1, 3600]
    assert client.execute_command("THROTTLE", key + "b", 2, 1, 3600) == [1, 2, 1, 3600, 0]
    with client.pipeline(transaction=False) as pipeline:
        for _ in range(50):
            pipeline.execute_command("CL.THROTTLE", key, 1, 1, 3600)
        replies = pipeline.execute()
    assert [reply[0] for reply in replies] == [0] + [1] * 49, replies
    with client.pipeline() as pipeline:  # a transaction, unless told otherwise
        for _ in range(3):
            pipeline.execute_command("CL.THROTTLE", key + "t", 1, 1, 3600)
        pipeline.ping()
        replies = pipeline.execute()
    assert [reply[0] for reply in replies[:3]] == [0, 0, 1] and replies[3] is True, replies
    with client.pipeline() as pipeline:
        pipeline.execute_command("CL.THROTTLE", key + "u", 1, 1, 3600)
        pipeline.execute_command("NOSUCH")
        try:
            pipeline.execute()
            raise SystemExit("a command that there is not is an error")
        except redis.ResponseError as error:
            assert "NOSUCH" in str(error), error
    assert client.execute_command("CL.THROTTLE", key + "u", 1, 1, 3600)[2] == 1, "charged by what was refused"
    decision = client.execute_command("TG.CHECK", f"client_key=py{number}")
    assert len(decision) in (10, 20), decision
    assert client.delete(key) == 1
    assert client.execute_command("CL.THROTTLE", key, 1, 1, 3600)[2] == 1
    try:
        client.execute_command("CL.THROTTLE", key, 0, 0, 60)
        raise SystemExit("a rate of zero is an error")
    except redis.ResponseError as error:
        assert "Zero rates" in str(error), error
    client.close()
named = redis.Redis(port=port, client_name="me", decode_responses=True)
assert named.client_getname() == "me"
decision = named.execute_command("TG.PEEK", "client_key=map")
assert decision["allowed"] is True and decision["limit"] == 10 and decision["reason"] is None, decision
print("ok")
