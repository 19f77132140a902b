-- The tables of Tollgate's control plane, for SQLite.
--
-- Names of tables and columns are a contract: read them with whatever you like. Write through the API or the command
-- line, which check what is written, keep the audit and tell all nodes. Whoever writes here directly must afterwards
-- ask for `POST /v1/rules/refresh`; a row that makes no sense is then left out by every node and named in its status.
--
-- Instants are text in UTC with microseconds (2026-12-01T00:00:00.000000Z), which sorts as time passes. JSON is text;
-- yes and no are 1 and 0. Tables are STRICT: a column holds what its type says. Those that are looked up by their key and
-- may grow long are kept in the order of that key (WITHOUT ROWID).

-- One row: where the tables stand. Every change updates it, so changes stand in one line and commit in the order of
-- their generations.
CREATE TABLE tollgate_state (
    id           INTEGER PRIMARY KEY CHECK (id = 1),
    generation   INTEGER NOT NULL,                -- of the last change
    audit_number INTEGER NOT NULL,                -- of the last row of the audit
    audit_hash   TEXT NOT NULL,                   -- of the last row of the audit
    mode         TEXT NOT NULL DEFAULT 'enforce', -- off, shadow, enforce: what all nodes do
    mode_since   TEXT NOT NULL,
    -- what nodes make digests and cursors with that all of them understand
    secret       TEXT NOT NULL DEFAULT (lower(hex(randomblob(32))))
) STRICT;
INSERT INTO tollgate_state (id, generation, audit_number, audit_hash, mode_since)
VALUES (1, 0, 0, '', '1970-01-01T00:00:00.000000Z');

-- How a namespace reads requests. A namespace without a row has the defaults.
CREATE TABLE rate_limit_namespaces (
    namespace       TEXT PRIMARY KEY,
    ipv6_prefix     INTEGER NOT NULL DEFAULT 64,    -- leading bits of an IPv6 address that identify a client
    escaped_slash   TEXT NOT NULL DEFAULT 'reject', -- or keep: what happens to %2F in paths
    allow_block_all INTEGER NOT NULL DEFAULT 0,     -- permits rules that refuse everything
    version         INTEGER NOT NULL DEFAULT 0      -- the generation that changed it last
) STRICT, WITHOUT ROWID;

-- Rules. What a rules file says under `rules:` is spread over the columns.
CREATE TABLE rate_limit_rules (
    namespace    TEXT NOT NULL DEFAULT 'default',
    rule_id      TEXT NOT NULL,                   -- its name in decisions, metrics and files
    name         TEXT NOT NULL DEFAULT '',        -- what people call it; the id if they call it nothing else
    client_key   TEXT NOT NULL DEFAULT '*',       -- the one client it is for; * leaves that to `match`
    endpoint     TEXT NOT NULL DEFAULT '*',       -- the one endpoint it is for; * leaves that to `match`
    "match"      TEXT NOT NULL DEFAULT '{}',      -- every other condition: {"tier": ["free", "trial"]}
    key_by       TEXT,                            -- what requests are counted by: user, ip, user:endpoint, …
    algorithm    TEXT NOT NULL DEFAULT 'token_bucket',
    max_requests INTEGER,                         -- per window; slots of a concurrency rule; none if unlimited
    window_secs  INTEGER,                         -- whole seconds of the window
    window_ms    INTEGER NOT NULL DEFAULT 0,      -- and what is left of it below a second
    burst_size   INTEGER NOT NULL DEFAULT 0,      -- capacity of a bucket; 0 if it is max_requests
    cost         TEXT NOT NULL DEFAULT '1',       -- a number, or a list of {"match": …, "cost": …}
    mode         TEXT NOT NULL DEFAULT 'enforce', -- enforce, shadow, off
    consistency  TEXT NOT NULL DEFAULT 'exact',   -- exact, leased, async, local
    on_fail      TEXT,                            -- allow, deny, local; none for the default
    options      TEXT NOT NULL DEFAULT '{}',      -- every other field of the rule: description, replaces, …
    enabled      INTEGER NOT NULL DEFAULT 1,
    created_at   TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    updated_at   TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    version      INTEGER NOT NULL DEFAULT 0,      -- the generation that changed it last
    PRIMARY KEY (namespace, rule_id),
    UNIQUE (namespace, client_key, endpoint, name)
) STRICT;

-- Other numbers of one rule for one client, for a time.
CREATE TABLE rate_limit_overrides (
    namespace    TEXT NOT NULL DEFAULT 'default',
    override_id  TEXT NOT NULL,
    client_key   TEXT NOT NULL,              -- whom it is for
    rule_id      TEXT NOT NULL,              -- the rule it changes; it goes when the rule goes
    max_requests INTEGER,                    -- instead of the rule's
    burst_size   INTEGER NOT NULL DEFAULT 0, -- instead of the rule's; 0 for the rule's
    unlimited    INTEGER NOT NULL DEFAULT 0, -- exempts the client
    valid_from   TEXT,                       -- first instant it holds; none for always
    valid_until  TEXT NOT NULL,              -- first instant it holds no more
    reason       TEXT NOT NULL DEFAULT '',
    created_at   TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    updated_at   TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    version      INTEGER NOT NULL DEFAULT 0, -- the generation that changed it last
    PRIMARY KEY (namespace, override_id),
    FOREIGN KEY (namespace, rule_id) REFERENCES rate_limit_rules (namespace, rule_id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX rate_limit_overrides_client ON rate_limit_overrides (client_key, namespace);
CREATE INDEX rate_limit_overrides_rule ON rate_limit_overrides (namespace, rule_id);

-- What is known of clients, so that a request that names only a key gets its tier.
CREATE TABLE clients (
    namespace    TEXT NOT NULL DEFAULT 'default',
    client_key   TEXT NOT NULL,              -- key:abc, user:42, …
    tier         TEXT,
    organisation TEXT,
    attributes   TEXT NOT NULL DEFAULT '{}', -- whatever else rules match on, as text
    created_at   TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    updated_at   TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    version      INTEGER NOT NULL DEFAULT 0, -- the generation that changed it last
    PRIMARY KEY (namespace, client_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX clients_organisation ON clients (organisation, namespace, client_key) WHERE organisation IS NOT NULL;

-- Who was refused: one row per client, rule and minute. Written behind, and deleted after some time.
CREATE TABLE rate_limit_violations (
    violation_id  INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace     TEXT NOT NULL DEFAULT 'default',
    client_key    TEXT NOT NULL,
    endpoint      TEXT NOT NULL,    -- what was refused first in that minute
    rule_id       TEXT NOT NULL,    -- which may be gone by now
    violated_at   TEXT NOT NULL,    -- the minute's first instant
    request_count INTEGER NOT NULL, -- how often it was refused in that minute
    limit_value   INTEGER NOT NULL, -- the limit that was in force
    UNIQUE (namespace, client_key, rule_id, violated_at)
) STRICT;
CREATE INDEX rate_limit_violations_client ON rate_limit_violations (client_key, violated_at);
-- Also serves retention, which deletes from the old end.
CREATE INDEX rate_limit_violations_time ON rate_limit_violations (violated_at, violation_id);

-- Every change, in the same transaction as the change itself. Each row carries a hash over itself and the row before:
-- a row that is changed or taken out breaks the chain (`GET /v1/audit/verify`). `before` and `after` are JSON, kept as
-- the very text that was hashed; json_extract looks inside.
CREATE TABLE audit (
    number      INTEGER PRIMARY KEY, -- from 1, without gaps
    generation  INTEGER NOT NULL,    -- that the change made
    at          TEXT NOT NULL,
    author      TEXT NOT NULL,       -- a token's id, cli, or node
    author_name TEXT NOT NULL,
    action      TEXT NOT NULL,       -- what for: create, import, rollback to 12, …
    kind        TEXT NOT NULL,       -- rule, override, client, namespace, token, mode, everything
    namespace   TEXT NOT NULL,       -- empty for what belongs to none
    id          TEXT NOT NULL,
    before      TEXT,                -- none if it was made
    after       TEXT,                -- none if it was deleted
    hash        TEXT NOT NULL        -- SHA-256, in hex
) STRICT;
CREATE INDEX audit_generation ON audit (generation);
CREATE INDEX audit_thing ON audit (id, kind, namespace, number);
CREATE INDEX audit_author ON audit (author, number);
CREATE INDEX audit_at ON audit (at);

-- Every generation: one per transaction that changed something.
CREATE TABLE generations (
    generation  INTEGER PRIMARY KEY,
    at          TEXT NOT NULL,
    author      TEXT NOT NULL,
    author_name TEXT NOT NULL,
    action      TEXT NOT NULL,
    changes     INTEGER NOT NULL -- how many things it changed
) STRICT;

-- Tokens of the admin API: tg_<token_id>_<secret>, of which only a hash is kept.
CREATE TABLE tokens (
    token_id     TEXT PRIMARY KEY,
    name         TEXT NOT NULL,
    role         TEXT NOT NULL, -- viewer, operator, admin
    namespaces   TEXT,          -- a list; none for all
    hash         BLOB NOT NULL, -- SHA-256 of the secret
    created_at   TEXT NOT NULL,
    created_by   TEXT NOT NULL,
    expires_at   TEXT,          -- first instant it opens nothing any more
    last_used_at TEXT,          -- to the minute
    revoked_at   TEXT
) STRICT, WITHOUT ROWID;

-- Answers to orders that came with an idempotency key, for a day.
CREATE TABLE idempotency_keys (
    author TEXT NOT NULL,
    key    TEXT NOT NULL,
    digest TEXT NOT NULL, -- of the order
    answer TEXT NOT NULL, -- as it was answered
    at     TEXT NOT NULL,
    PRIMARY KEY (author, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_at ON idempotency_keys (at);
