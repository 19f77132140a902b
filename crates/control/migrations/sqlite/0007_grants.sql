-- Units that a client gets once, on top of the amount of a quota.
CREATE TABLE rate_limit_grants (
    namespace   TEXT NOT NULL DEFAULT 'default' CONSTRAINT grant_namespace CHECK (namespace <> ''),
    grant_id    TEXT NOT NULL DEFAULT (lower(hex(randomblob(8)))) CONSTRAINT grant_id CHECK (grant_id <> ''),
    client_key  TEXT NOT NULL               -- whom it is for
                CONSTRAINT grant_client_key CHECK (client_key <> ''),
    rule_id     TEXT NOT NULL,              -- the quota it adds to, in the database or in a file
    amount      INTEGER NOT NULL            -- its units
                CONSTRAINT grant_amount CHECK (amount BETWEEN 1 AND 9007199254740992),
    valid_from  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) -- it counts in the period of this instant
                CONSTRAINT grant_valid_from CHECK (strftime('%s', valid_from) IS NOT NULL),
    valid_until TEXT                        -- first instant it counts no more; none for the end of the period
                CONSTRAINT grant_valid_until CHECK (valid_until IS NULL OR strftime('%s', valid_until) IS NOT NULL),
    reason      TEXT NOT NULL DEFAULT '',
    created_at  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    updated_at  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    version     INTEGER NOT NULL DEFAULT 0, -- the generation that changed it last
    PRIMARY KEY (namespace, grant_id),
    CONSTRAINT grant_ends_after_it_begins
        CHECK (valid_until IS NULL OR valid_from < valid_until OR strftime('%J', valid_from) + 0 < strftime('%J', valid_until) + 0)
) STRICT, WITHOUT ROWID;
CREATE INDEX rate_limit_grants_client ON rate_limit_grants (client_key, namespace);
CREATE INDEX rate_limit_grants_rule ON rate_limit_grants (namespace, rule_id);

-- Rows written with SQL, as in 0003_by_hand.sql.
CREATE TRIGGER rate_limit_grants_text_inserted BEFORE INSERT ON rate_limit_grants
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_texts VALUES (NEW.namespace || ' ' || NEW.grant_id || ' ' || NEW.client_key || ' ' || NEW.rule_id
            || ' ' || NEW.reason);
END;
CREATE TRIGGER rate_limit_grants_text_updated BEFORE UPDATE OF namespace, grant_id, client_key, rule_id, reason ON rate_limit_grants
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_texts VALUES (NEW.namespace || ' ' || NEW.grant_id || ' ' || NEW.client_key || ' ' || NEW.rule_id
            || ' ' || NEW.reason);
END;
CREATE TRIGGER rate_limit_grants_inserted AFTER INSERT ON rate_limit_grants
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    UPDATE tollgate_state SET writing = 1;
    UPDATE rate_limit_grants SET valid_until = strftime('%Y-%m-%dT%H:%M:%f000Z', valid_until)
    WHERE namespace = NEW.namespace AND grant_id = NEW.grant_id
      AND valid_until NOT GLOB '????-??-??T??:??:??.??????Z';
    UPDATE rate_limit_grants SET valid_from = strftime('%Y-%m-%dT%H:%M:%f000Z', valid_from)
    WHERE namespace = NEW.namespace AND grant_id = NEW.grant_id
      AND valid_from NOT GLOB '????-??-??T??:??:??.??????Z';
    UPDATE tollgate_state SET writing = 0;
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed)
    VALUES ('grant', NEW.namespace, NEW.grant_id, 0) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER rate_limit_grants_updated AFTER UPDATE ON rate_limit_grants
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    UPDATE tollgate_state SET writing = 1;
    UPDATE rate_limit_grants SET updated_at = strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')
    WHERE namespace = NEW.namespace AND grant_id = NEW.grant_id AND updated_at = OLD.updated_at;
    UPDATE rate_limit_grants SET valid_until = strftime('%Y-%m-%dT%H:%M:%f000Z', valid_until)
    WHERE namespace = NEW.namespace AND grant_id = NEW.grant_id
      AND valid_until NOT GLOB '????-??-??T??:??:??.??????Z';
    UPDATE rate_limit_grants SET valid_from = strftime('%Y-%m-%dT%H:%M:%f000Z', valid_from)
    WHERE namespace = NEW.namespace AND grant_id = NEW.grant_id
      AND valid_from NOT GLOB '????-??-??T??:??:??.??????Z';
    UPDATE tollgate_state SET writing = 0;
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed)
    VALUES ('grant', OLD.namespace, OLD.grant_id, 1), ('grant', NEW.namespace, NEW.grant_id, 0) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER rate_limit_grants_deleted AFTER DELETE ON rate_limit_grants
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed)
    VALUES ('grant', OLD.namespace, OLD.grant_id, 1) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER rate_limit_rules_deleted_grants AFTER DELETE ON rate_limit_rules
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    DELETE FROM rate_limit_grants WHERE namespace = OLD.namespace AND rule_id = OLD.rule_id;
END;
