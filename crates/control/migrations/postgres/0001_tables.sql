-- The tables of Tollgate's control plane, for PostgreSQL 13 and later.
--
-- Names of tables and columns are a contract: read them with whatever you like. Write through the API or the command
-- line, which check what is written, keep the audit and tell all nodes. Whoever writes here directly must afterwards
-- ask for `POST /v1/rules/refresh`; a row that makes no sense is then left out by every node and named in its status.
--
-- Instants are UTC with microseconds. Text that serves as a key is compared byte by byte (COLLATE "C"), whatever the
-- database's own collation: pages of a list continue where they ended, and SQLite sorts alike.

-- One row: where the tables stand. Every change updates it, so changes stand in one line and commit in the order of
-- their generations.
CREATE TABLE tollgate_state (
    id           BIGINT      PRIMARY KEY CHECK (id = 1),
    generation   BIGINT      NOT NULL,               -- of the last change
    audit_number BIGINT      NOT NULL,               -- of the last row of the audit
    audit_hash   TEXT        NOT NULL,               -- of the last row of the audit
    mode         TEXT        NOT NULL DEFAULT 'enforce', -- off, shadow, enforce: what all nodes do
    mode_since   TIMESTAMPTZ NOT NULL,
    -- what nodes make digests and cursors with that all of them understand
    secret       TEXT        NOT NULL DEFAULT replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '')
);
INSERT INTO tollgate_state (id, generation, audit_number, audit_hash, mode_since)
VALUES (1, 0, 0, '', TIMESTAMPTZ '1970-01-01 00:00:00+00');

-- How a namespace reads requests. A namespace without a row has the defaults.
CREATE TABLE rate_limit_namespaces (
    namespace       TEXT COLLATE "C" PRIMARY KEY,
    ipv6_prefix     BIGINT  NOT NULL DEFAULT 64,       -- leading bits of an IPv6 address that identify a client
    escaped_slash   TEXT    NOT NULL DEFAULT 'reject', -- or keep: what happens to %2F in paths
    allow_block_all BOOLEAN NOT NULL DEFAULT FALSE,    -- permits rules that refuse everything
    version         BIGINT  NOT NULL DEFAULT 0         -- the generation that changed it last
);

-- Rules. What a rules file says under `rules:` is spread over the columns.
CREATE TABLE rate_limit_rules (
    namespace    TEXT COLLATE "C" NOT NULL DEFAULT 'default',
    rule_id      TEXT COLLATE "C" NOT NULL,                -- its name in decisions, metrics and files
    name         TEXT COLLATE "C" NOT NULL DEFAULT '',     -- what people call it; the id if they call it nothing else
    client_key   TEXT COLLATE "C" NOT NULL DEFAULT '*',    -- the one client it is for; * leaves that to `match`
    endpoint     TEXT COLLATE "C" NOT NULL DEFAULT '*',    -- the one endpoint it is for; * leaves that to `match`
    "match"      JSONB       NOT NULL DEFAULT '{}',        -- every other condition: {"tier": ["free", "trial"]}
    key_by       TEXT,                                     -- what requests are counted by: user, ip, user:endpoint, …
    algorithm    TEXT        NOT NULL DEFAULT 'token_bucket',
    max_requests BIGINT,                                   -- per window; slots of a concurrency rule; none if unlimited
    window_secs  BIGINT,                                   -- whole seconds of the window
    window_ms    BIGINT      NOT NULL DEFAULT 0,           -- and what is left of it below a second
    burst_size   BIGINT      NOT NULL DEFAULT 0,           -- capacity of a bucket; 0 if it is max_requests
    cost         JSONB       NOT NULL DEFAULT '1',         -- a number, or a list of {"match": …, "cost": …}
    mode         TEXT        NOT NULL DEFAULT 'enforce',   -- enforce, shadow, off
    consistency  TEXT        NOT NULL DEFAULT 'exact',     -- exact, leased, async, local
    on_fail      TEXT,                                     -- allow, deny, local; none for the default
    options      JSONB       NOT NULL DEFAULT '{}',        -- every other field of the rule: description, replaces, …
    enabled      BOOLEAN     NOT NULL DEFAULT TRUE,
    created_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    version      BIGINT      NOT NULL DEFAULT 0,           -- the generation that changed it last
    PRIMARY KEY (namespace, rule_id),
    UNIQUE (namespace, client_key, endpoint, name)
);

-- Other numbers of one rule for one client, for a time.
CREATE TABLE rate_limit_overrides (
    namespace    TEXT COLLATE "C" NOT NULL DEFAULT 'default',
    override_id  TEXT COLLATE "C" NOT NULL,
    client_key   TEXT COLLATE "C" NOT NULL,                -- whom it is for
    rule_id      TEXT COLLATE "C" NOT NULL,                -- the rule it changes; it goes when the rule goes
    max_requests BIGINT,                                   -- instead of the rule's
    burst_size   BIGINT      NOT NULL DEFAULT 0,           -- instead of the rule's; 0 for the rule's
    unlimited    BOOLEAN     NOT NULL DEFAULT FALSE,       -- exempts the client
    valid_from   TIMESTAMPTZ,                              -- first instant it holds; none for always
    valid_until  TIMESTAMPTZ NOT NULL,                     -- first instant it holds no more
    reason       TEXT        NOT NULL DEFAULT '',
    created_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    version      BIGINT      NOT NULL DEFAULT 0,           -- the generation that changed it last
    PRIMARY KEY (namespace, override_id),
    FOREIGN KEY (namespace, rule_id) REFERENCES rate_limit_rules (namespace, rule_id) ON DELETE CASCADE
);
CREATE INDEX rate_limit_overrides_client ON rate_limit_overrides (client_key, namespace);
CREATE INDEX rate_limit_overrides_rule ON rate_limit_overrides (namespace, rule_id);

-- What is known of clients, so that a request that names only a key gets its tier.
CREATE TABLE clients (
    namespace    TEXT COLLATE "C" NOT NULL DEFAULT 'default',
    client_key   TEXT COLLATE "C" NOT NULL,                -- key:abc, user:42, …
    tier         TEXT COLLATE "C",
    organisation TEXT COLLATE "C",
    attributes   JSONB       NOT NULL DEFAULT '{}',        -- whatever else rules match on, as text
    created_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    version      BIGINT      NOT NULL DEFAULT 0,           -- the generation that changed it last
    PRIMARY KEY (namespace, client_key)
);
CREATE INDEX clients_organisation ON clients (organisation, namespace, client_key) WHERE organisation IS NOT NULL;

-- Who was refused: one row per client, rule and minute. Written behind, and deleted after some time.
CREATE TABLE rate_limit_violations (
    violation_id  BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace     TEXT COLLATE "C" NOT NULL DEFAULT 'default',
    client_key    TEXT COLLATE "C" NOT NULL,
    endpoint      TEXT COLLATE "C" NOT NULL,               -- what was refused first in that minute
    rule_id       TEXT COLLATE "C" NOT NULL,               -- which may be gone by now
    violated_at   TIMESTAMPTZ NOT NULL,                    -- the minute's first instant
    request_count BIGINT      NOT NULL,                    -- how often it was refused in that minute
    limit_value   BIGINT      NOT NULL,                    -- the limit that was in force
    UNIQUE (namespace, client_key, rule_id, violated_at)
);
CREATE INDEX rate_limit_violations_client ON rate_limit_violations (client_key, violated_at);
-- Also serves retention, which deletes from the old end.
CREATE INDEX rate_limit_violations_time ON rate_limit_violations (violated_at, violation_id);

-- Every change, in the same transaction as the change itself. Each row carries a hash over itself and the row before:
-- a row that is changed or taken out breaks the chain (`GET /v1/audit/verify`). `before` and `after` are JSON, kept as
-- the very text that was hashed; write before::jsonb to look inside.
CREATE TABLE audit (
    number      BIGINT      PRIMARY KEY,                   -- from 1, without gaps
    generation  BIGINT      NOT NULL,                      -- that the change made
    at          TIMESTAMPTZ NOT NULL,
    author      TEXT COLLATE "C" NOT NULL,                 -- a token's id, cli, or node
    author_name TEXT        NOT NULL,
    action      TEXT        NOT NULL,                      -- what for: create, import, rollback to 12, …
    kind        TEXT        NOT NULL,                      -- rule, override, client, namespace, token, mode, everything
    namespace   TEXT COLLATE "C" NOT NULL,                 -- empty for what belongs to none
    id          TEXT COLLATE "C" NOT NULL,
    before      TEXT,                                      -- none if it was made
    after       TEXT,                                      -- none if it was deleted
    hash        TEXT        NOT NULL                       -- SHA-256, in hex
);
CREATE INDEX audit_generation ON audit (generation);
CREATE INDEX audit_thing ON audit (id, kind, namespace, number);
CREATE INDEX audit_author ON audit (author, number);
CREATE INDEX audit_at ON audit (at);

-- Every generation: one per transaction that changed something.
CREATE TABLE generations (
    generation  BIGINT      PRIMARY KEY,
    at          TIMESTAMPTZ NOT NULL,
    author      TEXT COLLATE "C" NOT NULL,
    author_name TEXT        NOT NULL,
    action      TEXT        NOT NULL,
    changes     BIGINT      NOT NULL                       -- how many things it changed
);

-- Tokens of the admin API: tg_<token_id>_<secret>, of which only a hash is kept.
CREATE TABLE tokens (
    token_id     TEXT COLLATE "C" PRIMARY KEY,
    name         TEXT        NOT NULL,
    role         TEXT        NOT NULL,                     -- viewer, operator, admin
    namespaces   JSONB,                                    -- a list; none for all
    hash         BYTEA       NOT NULL,                     -- SHA-256 of the secret
    created_at   TIMESTAMPTZ NOT NULL,
    created_by   TEXT COLLATE "C" NOT NULL,
    expires_at   TIMESTAMPTZ,                              -- first instant it opens nothing any more
    last_used_at TIMESTAMPTZ,                              -- to the minute
    revoked_at   TIMESTAMPTZ
);

-- Answers to orders that came with an idempotency key, for a day.
CREATE TABLE idempotency_keys (
    author TEXT COLLATE "C" NOT NULL,
    key    TEXT COLLATE "C" NOT NULL,
    digest TEXT        NOT NULL,                           -- of the order
    answer TEXT        NOT NULL,                           -- as it was answered
    at     TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (author, key)
);
CREATE INDEX idempotency_keys_at ON idempotency_keys (at);
