-- Rows that people write with SQL: ids and times by default, CHECKs on what columns hold, and triggers that note what was
-- changed, so that every node has it in force within two seconds and the audit names it.
--
-- Tables are made anew, since SQLite changes neither a default nor a constraint of one that is there. Rows that no CHECK
-- would let in stay as they are, left out of decisions and named in the status of each node, until somebody mends them.
PRAGMA ignore_check_constraints = ON;

-- 1 inside a transaction of Tollgate itself, which keeps its own audit. No other transaction ever sees it.
ALTER TABLE tollgate_state ADD COLUMN writing INTEGER NOT NULL DEFAULT 0;

-- What was changed with SQL, until a node has taken it over into the audit.
CREATE TABLE tollgate_sql_edits (
    kind       TEXT NOT NULL,    -- rule, override, client, namespace, token
    namespace  TEXT NOT NULL,
    id         TEXT NOT NULL,
    existed    INTEGER NOT NULL, -- whether it was there before
    written_by TEXT NOT NULL DEFAULT 'sql',
    PRIMARY KEY (kind, namespace, id)
) STRICT, WITHOUT ROWID;

-- Overrides. Their rule may stand in a file, so nothing refers to the table of rules; what belonged to a rule still goes
-- with it.
CREATE TABLE new_overrides (
    namespace    TEXT NOT NULL DEFAULT 'default' CONSTRAINT override_namespace CHECK (namespace <> ''),
    override_id  TEXT NOT NULL DEFAULT (lower(hex(randomblob(8)))) CONSTRAINT override_id CHECK (override_id <> ''),
    client_key   TEXT NOT NULL               -- whom it is for
                 CONSTRAINT override_client_key CHECK (client_key <> ''),
    rule_id      TEXT NOT NULL,              -- the rule it changes
    max_requests INTEGER                     -- instead of the rule's
                 CONSTRAINT override_max_requests CHECK (max_requests >= 0),
    burst_size   INTEGER DEFAULT 0           -- instead of the rule's; 0 for the rule's
                 CONSTRAINT override_burst_size CHECK (burst_size >= 0),
    unlimited    INTEGER NOT NULL DEFAULT 0  -- exempts the client
                 CONSTRAINT override_unlimited CHECK (unlimited IN (0, 1)),
    valid_from   TEXT                        -- first instant it holds; none for always
                 CONSTRAINT override_valid_from CHECK (valid_from IS NULL OR strftime('%s', valid_from) IS NOT NULL),
    valid_until  TEXT NOT NULL               -- first instant it holds no more; 2026-12-01 00:00:00 will do
                 CONSTRAINT override_valid_until CHECK (strftime('%s', valid_until) IS NOT NULL),
    reason       TEXT NOT NULL DEFAULT '',
    created_at   TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    updated_at   TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    version      INTEGER NOT NULL DEFAULT 0, -- the generation that changed it last
    PRIMARY KEY (namespace, override_id),
    CONSTRAINT override_ends_after_it_begins
        CHECK (valid_from IS NULL OR valid_from < valid_until OR strftime('%J', valid_from) + 0 < strftime('%J', valid_until) + 0)
) STRICT, WITHOUT ROWID;
INSERT INTO new_overrides
SELECT namespace, override_id, client_key, rule_id, max_requests, burst_size, unlimited, valid_from, valid_until, reason,
       created_at, updated_at, version FROM rate_limit_overrides;
DROP TABLE rate_limit_overrides;
ALTER TABLE new_overrides RENAME TO rate_limit_overrides;
CREATE INDEX rate_limit_overrides_client ON rate_limit_overrides (client_key, namespace);
CREATE INDEX rate_limit_overrides_rule ON rate_limit_overrides (namespace, rule_id);

-- Rules. A row that is inserted without a rule_id gets its number as one.
CREATE TABLE new_rules (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace    TEXT NOT NULL DEFAULT 'default' CONSTRAINT rule_namespace CHECK (namespace <> ''),
    rule_id      TEXT NOT NULL DEFAULT '',        -- its name in decisions, metrics and files
    name         TEXT NOT NULL DEFAULT '',        -- what people call it; the id if they call it nothing else
    client_key   TEXT NOT NULL DEFAULT '*',       -- the one client it is for; * leaves that to `match`
    endpoint     TEXT NOT NULL DEFAULT '*',       -- the one endpoint it is for; * leaves that to `match`
    "match"      TEXT NOT NULL DEFAULT '{}'       -- every other condition: {"tier": ["free", "trial"]}
                 CONSTRAINT rule_match CHECK (CASE WHEN json_valid("match") THEN json_type("match") = 'object' END IS TRUE),
    key_by       TEXT,                            -- what requests are counted by: user_id, ip, user_id:endpoint, …; client_key if NULL
    algorithm    TEXT NOT NULL DEFAULT 'token_bucket'
                 CONSTRAINT rule_algorithm CHECK (algorithm IN
                 ('token_bucket', 'gcra', 'leaky_bucket', 'fixed_window', 'sliding_window', 'sliding_window_counter',
                  'sliding_window_log', 'concurrency')),
    max_requests INTEGER                          -- per window; slots of a concurrency rule; none if unlimited
                 CONSTRAINT rule_max_requests CHECK (max_requests >= 0),
    window_secs  INTEGER                          -- whole seconds of the window
                 CONSTRAINT rule_window_secs CHECK (window_secs >= 0),
    window_ms    INTEGER NOT NULL DEFAULT 0       -- and what is left of it below a second
                 CONSTRAINT rule_window_ms CHECK (window_ms BETWEEN 0 AND 999),
    burst_size   INTEGER DEFAULT 0                -- capacity of a bucket; 0 if it is max_requests. Windows have none
                 CONSTRAINT rule_burst_size CHECK (burst_size >= 0),
    cost         TEXT NOT NULL DEFAULT '1'        -- a number, or a list of {"match": …, "cost": …}
                 CONSTRAINT rule_cost CHECK (json_valid(cost)),
    mode         TEXT NOT NULL DEFAULT 'enforce' CONSTRAINT rule_mode CHECK (mode IN ('enforce', 'shadow', 'off')),
    consistency  TEXT NOT NULL DEFAULT 'exact'
                 CONSTRAINT rule_consistency CHECK (consistency IN ('exact', 'leased', 'async', 'local')),
    on_fail      TEXT                             -- none for the default
                 CONSTRAINT rule_on_fail CHECK (on_fail IN ('allow', 'deny', 'local')),
    options      TEXT NOT NULL DEFAULT '{}'       -- every other field of the rule: description, replaces, …
                 CONSTRAINT rule_options CHECK (CASE WHEN json_valid(options) THEN json_type(options) = 'object' END IS TRUE),
    enabled      INTEGER NOT NULL DEFAULT 1 CONSTRAINT rule_enabled CHECK (enabled IN (0, 1)),
    created_at   TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    updated_at   TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    version      INTEGER NOT NULL DEFAULT 0,      -- the generation that changed it last
    UNIQUE (namespace, rule_id),
    UNIQUE (namespace, client_key, endpoint, name)
) STRICT;
INSERT INTO new_rules (namespace, rule_id, name, client_key, endpoint, "match", key_by, algorithm, max_requests,
                       window_secs, window_ms, burst_size, cost, mode, consistency, on_fail, options, enabled, created_at,
                       updated_at, version)
SELECT namespace, rule_id, name, client_key, endpoint, "match", key_by, algorithm, max_requests, window_secs, window_ms,
       burst_size, cost, mode, consistency, on_fail, options, enabled, created_at, updated_at, version
FROM rate_limit_rules ORDER BY created_at, namespace, rule_id;
DROP TABLE rate_limit_rules;
ALTER TABLE new_rules RENAME TO rate_limit_rules;

-- Clients and namespaces.
CREATE TABLE new_clients (
    namespace    TEXT NOT NULL DEFAULT 'default' CONSTRAINT client_namespace CHECK (namespace <> ''),
    client_key   TEXT NOT NULL CONSTRAINT client_key CHECK (client_key <> ''), -- key:abc, user:42, …
    tier         TEXT,
    organisation TEXT,
    attributes   TEXT NOT NULL DEFAULT '{}'  -- whatever else rules match on, as text
                 CONSTRAINT client_attributes
                 CHECK (CASE WHEN json_valid(attributes) THEN json_type(attributes) = 'object' END IS TRUE),
    created_at   TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    updated_at   TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    version      INTEGER NOT NULL DEFAULT 0, -- the generation that changed it last
    PRIMARY KEY (namespace, client_key)
) STRICT, WITHOUT ROWID;
INSERT INTO new_clients
SELECT namespace, client_key, tier, organisation, attributes, created_at, updated_at, version FROM clients;
DROP TABLE clients;
ALTER TABLE new_clients RENAME TO clients;
CREATE INDEX clients_organisation ON clients (organisation, namespace, client_key) WHERE organisation IS NOT NULL;

CREATE TABLE new_namespaces (
    namespace       TEXT PRIMARY KEY CONSTRAINT namespace CHECK (namespace <> ''),
    ipv6_prefix     INTEGER NOT NULL DEFAULT 64     -- leading bits of an IPv6 address that identify a client
                    CONSTRAINT namespace_ipv6_prefix CHECK (ipv6_prefix BETWEEN 1 AND 128),
    escaped_slash   TEXT NOT NULL DEFAULT 'reject'  -- or keep: what happens to %2F in paths
                    CONSTRAINT namespace_escaped_slash CHECK (escaped_slash IN ('reject', 'keep')),
    allow_block_all INTEGER NOT NULL DEFAULT 0      -- permits rules that refuse everything
                    CONSTRAINT namespace_allow_block_all CHECK (allow_block_all IN (0, 1)),
    version         INTEGER NOT NULL DEFAULT 0      -- the generation that changed it last
) STRICT, WITHOUT ROWID;
INSERT INTO new_namespaces SELECT namespace, ipv6_prefix, escaped_slash, allow_block_all, version
FROM rate_limit_namespaces;
DROP TABLE rate_limit_namespaces;
ALTER TABLE new_namespaces RENAME TO rate_limit_namespaces;

-- Violations: the first count is what stood against the limit, the second how often it was refused.
CREATE TABLE new_violations (
    violation_id  INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace     TEXT NOT NULL DEFAULT 'default',
    client_key    TEXT NOT NULL,
    endpoint      TEXT NOT NULL,              -- what was refused first in that minute
    rule_id       TEXT,                       -- which may be gone by now; none if no rule is known
    violated_at   TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) -- the minute's first instant
                  CONSTRAINT violation_violated_at CHECK (strftime('%s', violated_at) IS NOT NULL),
    request_count INTEGER NOT NULL            -- the count that met the limit, the refused request included
                  CONSTRAINT violation_request_count CHECK (request_count >= 0),
    limit_value   INTEGER NOT NULL            -- the limit that was in force
                  CONSTRAINT violation_limit_value CHECK (limit_value >= 0),
    refused       INTEGER NOT NULL DEFAULT 1  -- how often it was refused in that minute
                  CONSTRAINT violation_refused CHECK (refused >= 0),
    shadow        INTEGER NOT NULL DEFAULT 0  -- 1 if it would have been refused, and was not: the rule is in shadow mode
                  CONSTRAINT violation_shadow CHECK (shadow IN (0, 1)),
    last_at       TEXT,                       -- the last time in that minute; none for violated_at
    UNIQUE (namespace, client_key, rule_id, violated_at, shadow)
) STRICT;
INSERT INTO new_violations
SELECT violation_id, namespace, client_key, endpoint, rule_id, violated_at, limit_value + 1, limit_value, request_count, 0,
       NULL FROM rate_limit_violations;
DROP TABLE rate_limit_violations;
ALTER TABLE new_violations RENAME TO rate_limit_violations;
CREATE INDEX rate_limit_violations_client ON rate_limit_violations (client_key, violated_at);
CREATE INDEX rate_limit_violations_rule ON rate_limit_violations (rule_id, violated_at);
-- Also serves retention, which deletes from the old end.
CREATE INDEX rate_limit_violations_time ON rate_limit_violations (violated_at, violation_id);

PRAGMA ignore_check_constraints = OFF;

-- Texts that SQL writes are UTF-8 without NUL, which SQLite does not check by itself and no CHECK can say: each character
-- is made again from its number, and must come out as it is. Whatever is put into this view is checked.
CREATE VIEW tollgate_texts AS SELECT '' AS text;
CREATE TRIGGER tollgate_texts_checked INSTEAD OF INSERT ON tollgate_texts
WHEN instr(CAST(NEW.text AS BLOB), x'00') > 0
  OR (NEW.text GLOB '*[^ -~]*' AND EXISTS ( -- more than ASCII
    SELECT 1 FROM json_each('[0' || replace(hex(zeroblob(length(NEW.text) - 1)), '00', ',0') || ']') AS place
    WHERE CAST(substr(NEW.text, place.key + 1, 1) AS BLOB) NOT IN -- U+FFFE and U+FFFF are characters that have no number
          (CAST(char(unicode(substr(NEW.text, place.key + 1, 1))) AS BLOB), x'efbfbe', x'efbfbf')))
BEGIN
    SELECT RAISE(ABORT, 'texts must be UTF-8, without NUL');
END;
CREATE TRIGGER rate_limit_rules_text_inserted BEFORE INSERT ON rate_limit_rules
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_texts VALUES (NEW.namespace || ' ' || NEW.rule_id || ' ' || NEW.name || ' ' || NEW.client_key
            || ' ' || NEW.endpoint || ' ' || NEW."match" || ' ' || coalesce(NEW.key_by, '')
            || ' ' || NEW.cost || ' ' || NEW.options);
END;
CREATE TRIGGER rate_limit_rules_text_updated BEFORE UPDATE OF namespace, rule_id, name, client_key, endpoint, "match", key_by, cost, options ON rate_limit_rules
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_texts VALUES (NEW.namespace || ' ' || NEW.rule_id || ' ' || NEW.name || ' ' || NEW.client_key
            || ' ' || NEW.endpoint || ' ' || NEW."match" || ' ' || coalesce(NEW.key_by, '')
            || ' ' || NEW.cost || ' ' || NEW.options);
END;
CREATE TRIGGER rate_limit_overrides_text_inserted BEFORE INSERT ON rate_limit_overrides
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_texts VALUES (NEW.namespace || ' ' || NEW.override_id || ' ' || NEW.client_key || ' ' || NEW.rule_id
            || ' ' || NEW.reason);
END;
CREATE TRIGGER rate_limit_overrides_text_updated BEFORE UPDATE OF namespace, override_id, client_key, rule_id, reason ON rate_limit_overrides
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_texts VALUES (NEW.namespace || ' ' || NEW.override_id || ' ' || NEW.client_key || ' ' || NEW.rule_id
            || ' ' || NEW.reason);
END;
CREATE TRIGGER rate_limit_rule_modes_text_inserted BEFORE INSERT ON rate_limit_rule_modes
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_texts VALUES (NEW.namespace || ' ' || NEW.rule_id || ' ' || NEW.reason);
END;
CREATE TRIGGER rate_limit_rule_modes_text_updated BEFORE UPDATE OF namespace, rule_id, reason ON rate_limit_rule_modes
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_texts VALUES (NEW.namespace || ' ' || NEW.rule_id || ' ' || NEW.reason);
END;
CREATE TRIGGER clients_text_inserted BEFORE INSERT ON clients
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_texts VALUES (NEW.namespace || ' ' || NEW.client_key || ' ' || coalesce(NEW.tier, '')
            || ' ' || coalesce(NEW.organisation, '') || ' ' || NEW.attributes);
END;
CREATE TRIGGER clients_text_updated BEFORE UPDATE OF namespace, client_key, tier, organisation, attributes ON clients
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_texts VALUES (NEW.namespace || ' ' || NEW.client_key || ' ' || coalesce(NEW.tier, '')
            || ' ' || coalesce(NEW.organisation, '') || ' ' || NEW.attributes);
END;
CREATE TRIGGER rate_limit_namespaces_text_inserted BEFORE INSERT ON rate_limit_namespaces
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_texts VALUES (NEW.namespace);
END;
CREATE TRIGGER rate_limit_namespaces_text_updated BEFORE UPDATE OF namespace ON rate_limit_namespaces
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_texts VALUES (NEW.namespace);
END;
CREATE TRIGGER tokens_text_inserted BEFORE INSERT ON tokens
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_texts VALUES (NEW.token_id || ' ' || NEW.name || ' ' || coalesce(NEW.namespaces, '') || ' ' || NEW.created_by);
END;
CREATE TRIGGER tokens_text_updated BEFORE UPDATE OF token_id, name, namespaces, created_by ON tokens
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_texts VALUES (NEW.token_id || ' ' || NEW.name || ' ' || coalesce(NEW.namespaces, '') || ' ' || NEW.created_by);
END;
CREATE TRIGGER rate_limit_violations_text_inserted BEFORE INSERT ON rate_limit_violations BEGIN
    INSERT INTO tollgate_texts VALUES (NEW.namespace || ' ' || NEW.client_key || ' ' || NEW.endpoint
            || ' ' || coalesce(NEW.rule_id, ''));
END;
CREATE TRIGGER rate_limit_violations_text_updated BEFORE UPDATE OF namespace, client_key, endpoint, rule_id ON rate_limit_violations BEGIN
    INSERT INTO tollgate_texts VALUES (NEW.namespace || ' ' || NEW.client_key || ' ' || NEW.endpoint
            || ' ' || coalesce(NEW.rule_id, ''));
END;

-- Triggers. What they write themselves they write as Tollgate, so that no other trigger takes it for an edit.
-- An update is noted for the key before and the key after, which are two things only if the row was renamed: then the second
-- was not there.
CREATE TRIGGER rate_limit_rules_inserted AFTER INSERT ON rate_limit_rules
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    UPDATE tollgate_state SET writing = 1;
    UPDATE rate_limit_rules SET rule_id = CASE
        WHEN rule_id <> '' THEN rule_id
        WHEN EXISTS (SELECT 1 FROM rate_limit_rules WHERE namespace = NEW.namespace AND rule_id = CAST(NEW.number AS TEXT))
            THEN 'rule-' || NEW.number
        ELSE CAST(NEW.number AS TEXT) END
    WHERE number = NEW.number;
    UPDATE rate_limit_rules SET name = rule_id WHERE number = NEW.number AND name = '';
    UPDATE tollgate_state SET writing = 0;
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed)
    SELECT 'rule', namespace, rule_id, 0 FROM rate_limit_rules WHERE number = NEW.number ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER rate_limit_rules_updated AFTER UPDATE ON rate_limit_rules
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    UPDATE tollgate_state SET writing = 1;
    UPDATE rate_limit_rules SET updated_at = strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')
    WHERE number = NEW.number AND updated_at = OLD.updated_at;
    UPDATE tollgate_state SET writing = 0;
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed)
    VALUES ('rule', OLD.namespace, OLD.rule_id, 1), ('rule', NEW.namespace, NEW.rule_id, 0) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER rate_limit_rules_deleted AFTER DELETE ON rate_limit_rules
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed)
    VALUES ('rule', OLD.namespace, OLD.rule_id, 1) ON CONFLICT DO NOTHING;
    DELETE FROM rate_limit_overrides WHERE namespace = OLD.namespace AND rule_id = OLD.rule_id;
    DELETE FROM rate_limit_rule_modes WHERE namespace = OLD.namespace AND rule_id = OLD.rule_id;
END;

-- Instants of overrides in any form that SQLite reads become the one that sorts as time passes.
CREATE TRIGGER rate_limit_overrides_inserted AFTER INSERT ON rate_limit_overrides
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    UPDATE tollgate_state SET writing = 1;
    UPDATE rate_limit_overrides SET valid_until = strftime('%Y-%m-%dT%H:%M:%f000Z', valid_until)
    WHERE namespace = NEW.namespace AND override_id = NEW.override_id
      AND valid_until NOT GLOB '????-??-??T??:??:??.??????Z';
    UPDATE rate_limit_overrides SET valid_from = strftime('%Y-%m-%dT%H:%M:%f000Z', valid_from)
    WHERE namespace = NEW.namespace AND override_id = NEW.override_id
      AND valid_from NOT GLOB '????-??-??T??:??:??.??????Z';
    UPDATE tollgate_state SET writing = 0;
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed)
    VALUES ('override', NEW.namespace, NEW.override_id, 0) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER rate_limit_overrides_updated AFTER UPDATE ON rate_limit_overrides
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    UPDATE tollgate_state SET writing = 1;
    UPDATE rate_limit_overrides SET updated_at = strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')
    WHERE namespace = NEW.namespace AND override_id = NEW.override_id AND updated_at = OLD.updated_at;
    UPDATE rate_limit_overrides SET valid_until = strftime('%Y-%m-%dT%H:%M:%f000Z', valid_until)
    WHERE namespace = NEW.namespace AND override_id = NEW.override_id
      AND valid_until NOT GLOB '????-??-??T??:??:??.??????Z';
    UPDATE rate_limit_overrides SET valid_from = strftime('%Y-%m-%dT%H:%M:%f000Z', valid_from)
    WHERE namespace = NEW.namespace AND override_id = NEW.override_id
      AND valid_from NOT GLOB '????-??-??T??:??:??.??????Z';
    UPDATE tollgate_state SET writing = 0;
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed)
    VALUES ('override', OLD.namespace, OLD.override_id, 1), ('override', NEW.namespace, NEW.override_id, 0)
    ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER rate_limit_overrides_deleted AFTER DELETE ON rate_limit_overrides
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed)
    VALUES ('override', OLD.namespace, OLD.override_id, 1) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER clients_inserted AFTER INSERT ON clients
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed)
    VALUES ('client', NEW.namespace, NEW.client_key, 0) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER clients_updated AFTER UPDATE ON clients
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    UPDATE tollgate_state SET writing = 1;
    UPDATE clients SET updated_at = strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')
    WHERE namespace = NEW.namespace AND client_key = NEW.client_key AND updated_at = OLD.updated_at;
    UPDATE tollgate_state SET writing = 0;
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed)
    VALUES ('client', OLD.namespace, OLD.client_key, 1), ('client', NEW.namespace, NEW.client_key, 0)
    ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER clients_deleted AFTER DELETE ON clients
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed)
    VALUES ('client', OLD.namespace, OLD.client_key, 1) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER rate_limit_namespaces_inserted AFTER INSERT ON rate_limit_namespaces
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed)
    VALUES ('namespace', NEW.namespace, NEW.namespace, 0) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER rate_limit_namespaces_updated AFTER UPDATE ON rate_limit_namespaces
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed)
    VALUES ('namespace', OLD.namespace, OLD.namespace, 1), ('namespace', NEW.namespace, NEW.namespace, 0)
    ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER rate_limit_namespaces_deleted AFTER DELETE ON rate_limit_namespaces
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed)
    VALUES ('namespace', OLD.namespace, OLD.namespace, 1) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER rate_limit_rule_modes_inserted AFTER INSERT ON rate_limit_rule_modes
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed)
    VALUES ('rule_mode', NEW.namespace, NEW.rule_id, 0) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER rate_limit_rule_modes_updated AFTER UPDATE ON rate_limit_rule_modes
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    UPDATE tollgate_state SET writing = 1;
    UPDATE rate_limit_rule_modes SET updated_at = strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')
    WHERE namespace = NEW.namespace AND rule_id = NEW.rule_id AND updated_at = OLD.updated_at;
    UPDATE tollgate_state SET writing = 0;
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed)
    VALUES ('rule_mode', OLD.namespace, OLD.rule_id, 1), ('rule_mode', NEW.namespace, NEW.rule_id, 0)
    ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER rate_limit_rule_modes_deleted AFTER DELETE ON rate_limit_rule_modes
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed)
    VALUES ('rule_mode', OLD.namespace, OLD.rule_id, 1) ON CONFLICT DO NOTHING;
END;

-- Tokens: to revoke one with SQL is to revoke it. When one was used is no edit.
CREATE TRIGGER tokens_inserted AFTER INSERT ON tokens
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed) VALUES ('token', '', NEW.token_id, 0)
    ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER tokens_updated AFTER UPDATE OF token_id, name, role, namespaces, hash, expires_at, revoked_at ON tokens
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed)
    VALUES ('token', '', OLD.token_id, 1), ('token', '', NEW.token_id, 0) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER tokens_deleted AFTER DELETE ON tokens
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed) VALUES ('token', '', OLD.token_id, 1)
    ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER rate_limit_violations_inserted AFTER INSERT ON rate_limit_violations
WHEN NEW.violated_at NOT GLOB '????-??-??T??:??:??.??????Z' BEGIN
    UPDATE rate_limit_violations SET violated_at = strftime('%Y-%m-%dT%H:%M:%f000Z', violated_at)
    WHERE violation_id = NEW.violation_id;
END;
