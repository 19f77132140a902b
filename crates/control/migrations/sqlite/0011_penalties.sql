-- Penalties: who is refused altogether until when. Written behind by the nodes; the store has what is in force, so deleting a row
-- lifts nothing.
CREATE TABLE rate_limit_penalties (
    bucket     TEXT NOT NULL,            -- the digest of the bucket whose denials brought it, in hex
    identity   INTEGER NOT NULL,         -- what the store keeps it under
    node       TEXT NOT NULL DEFAULT '', -- the node that has it in its memory; empty if all nodes share it
    namespace  TEXT NOT NULL,
    rule_id    TEXT NOT NULL,            -- which may be gone by now
    client_key TEXT NOT NULL,            -- as a digest; - for all clients
    number     INTEGER NOT NULL,         -- how many are remembered of it, this one included
    begun_at   TEXT NOT NULL,
    ends_at    TEXT NOT NULL,
    PRIMARY KEY (bucket, node)
) STRICT, WITHOUT ROWID;
CREATE INDEX rate_limit_penalties_end ON rate_limit_penalties (ends_at);
