-- What was used of quotas: one row per bucket of a rule and period. Written behind by the nodes, and deleted after some time.

-- Temporary objects last, as in 0003_by_hand.sql.
SELECT set_config('search_path', string_agg(quote_ident(name), ', ' ORDER BY place) || ', pg_temp', TRUE)
FROM unnest(current_schemas(FALSE)) WITH ORDINALITY AS searched (name, place) WHERE name NOT LIKE 'pg\_temp%';

CREATE TABLE quota_usage (
    usage_id     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    bucket       TEXT COLLATE "C" NOT NULL,            -- the digest that names the bucket in the store, in hex
    node         TEXT COLLATE "C" NOT NULL DEFAULT '', -- the node that has the bucket in its memory; empty if all nodes share it
    namespace    TEXT COLLATE "C" NOT NULL,            -- empty if the rule is not known
    rule_id      TEXT COLLATE "C" NOT NULL,            -- which may be gone by now; empty if it is not known
    client_key   TEXT COLLATE "C",                     -- whose bucket it is, as a digest; - for all clients; none if it is not known
    organisation TEXT COLLATE "C",                     -- of the client, as a digest
    period_start TIMESTAMPTZ,                          -- none if it is not known, or never was
    period_end   TIMESTAMPTZ NOT NULL,                 -- first instant after the period; in the year 2262 for a quota without end
    used         BIGINT      NOT NULL,                 -- units, as the store said at as_of
    limit_value  BIGINT,                               -- amount, carried and granted units, as the store said
    as_of        TIMESTAMPTZ NOT NULL,                 -- by the clock of the store
    UNIQUE (bucket, node, period_end)
);
CREATE INDEX quota_usage_client ON quota_usage (client_key, period_end);
CREATE INDEX quota_usage_organisation ON quota_usage (organisation, period_end) WHERE organisation IS NOT NULL;
CREATE INDEX quota_usage_rule ON quota_usage (namespace, rule_id, period_end);
-- Also serves retention, which deletes from the old end.
CREATE INDEX quota_usage_time ON quota_usage (period_end, usage_id);
