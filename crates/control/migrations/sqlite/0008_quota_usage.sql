-- What was used of quotas: one row per bucket of a rule and period. Written behind by the nodes, and deleted after some time.
CREATE TABLE quota_usage (
    usage_id     INTEGER PRIMARY KEY AUTOINCREMENT,
    bucket       TEXT NOT NULL,            -- the digest that names the bucket in the store, in hex
    node         TEXT NOT NULL DEFAULT '', -- the node that has the bucket in its memory; empty if all nodes share it
    namespace    TEXT NOT NULL,            -- empty if the rule is not known
    rule_id      TEXT NOT NULL,            -- which may be gone by now; empty if it is not known
    client_key   TEXT,                     -- whose bucket it is, as a digest; - for all clients; none if it is not known
    organisation TEXT,                     -- of the client, as a digest
    period_start TEXT,                     -- none if it is not known, or never was
    period_end   TEXT NOT NULL,            -- first instant after the period; in the year 2262 for a quota without end
    used         INTEGER NOT NULL,         -- units, as the store said at as_of
    limit_value  INTEGER,                  -- amount, carried and granted units, as the store said
    as_of        TEXT NOT NULL,            -- by the clock of the store
    UNIQUE (bucket, node, period_end)
) STRICT;
CREATE INDEX quota_usage_client ON quota_usage (client_key, period_end);
CREATE INDEX quota_usage_organisation ON quota_usage (organisation, period_end) WHERE organisation IS NOT NULL;
CREATE INDEX quota_usage_rule ON quota_usage (namespace, rule_id, period_end);
-- Also serves retention, which deletes from the old end.
CREATE INDEX quota_usage_time ON quota_usage (period_end, usage_id);
