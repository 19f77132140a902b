-- Overrides and switches may be of rules that stand in files: they refer to a rule by namespace and id, wherever it is.

CREATE TABLE new_overrides (
    namespace    TEXT NOT NULL DEFAULT 'default',
    override_id  TEXT NOT NULL,
    client_key   TEXT NOT NULL,              -- whom it is for
    rule_id      TEXT NOT NULL,              -- the rule it changes, in the database or in a file
    max_requests INTEGER,                    -- instead of the rule's
    burst_size   INTEGER NOT NULL DEFAULT 0, -- instead of the rule's; 0 for the rule's
    unlimited    INTEGER NOT NULL DEFAULT 0, -- exempts the client
    valid_from   TEXT,                       -- first instant it holds; none for always
    valid_until  TEXT NOT NULL,              -- first instant it holds no more
    reason       TEXT NOT NULL DEFAULT '',
    created_at   TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    updated_at   TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    version      INTEGER NOT NULL DEFAULT 0, -- the generation that changed it last
    PRIMARY KEY (namespace, override_id)
) STRICT, WITHOUT ROWID;
INSERT INTO new_overrides
SELECT namespace, override_id, client_key, rule_id, max_requests, burst_size, unlimited, valid_from, valid_until, reason,
       created_at, updated_at, version FROM rate_limit_overrides;
DROP TABLE rate_limit_overrides;
ALTER TABLE new_overrides RENAME TO rate_limit_overrides;
CREATE INDEX rate_limit_overrides_client ON rate_limit_overrides (client_key, namespace);
CREATE INDEX rate_limit_overrides_rule ON rate_limit_overrides (namespace, rule_id);

-- The switch of a single rule: a mode that holds instead of the rule's own until the row is deleted.
CREATE TABLE rate_limit_rule_modes (
    namespace  TEXT NOT NULL DEFAULT 'default',
    rule_id    TEXT NOT NULL,              -- the rule, in the database or in a file
    mode       TEXT NOT NULL CONSTRAINT rule_mode_mode CHECK (mode IN ('enforce', 'shadow', 'off')),
    reason     TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    version    INTEGER NOT NULL DEFAULT 0, -- the generation that changed it last
    PRIMARY KEY (namespace, rule_id)
) STRICT, WITHOUT ROWID;
