-- Plans: named sets of rules. Clients and organisations have one, or several over time.

CREATE TABLE rate_limit_plans (
    namespace   TEXT NOT NULL DEFAULT 'default' CONSTRAINT plan_namespace CHECK (namespace <> ''),
    plan_id     TEXT NOT NULL -- the name of the plan: its rules are named plan.rule
                CONSTRAINT plan_id CHECK (length(plan_id) BETWEEN 1 AND 32 AND plan_id NOT GLOB '*[^A-Za-z0-9_-]*'),
    extends     TEXT,                        -- a plan of this namespace whose rules it has too
    is_default  INTEGER NOT NULL DEFAULT 0   -- the plan of clients without one
                CONSTRAINT plan_is_default CHECK (is_default IN (0, 1)),
    limits      TEXT NOT NULL DEFAULT '[]'   -- rules as in a rules file, each with a name
                CONSTRAINT plan_limits
                CHECK (CASE WHEN json_valid(limits) THEN json_type(limits) = 'array' END IS TRUE),
    description TEXT NOT NULL DEFAULT '',
    created_at  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    updated_at  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    version     INTEGER NOT NULL DEFAULT 0,  -- the generation that changed it last
    PRIMARY KEY (namespace, plan_id)
) STRICT, WITHOUT ROWID;

-- A name, or a JSON list of steps: ["free", {"plan": "pro", "from": "2026-12-01"}].
ALTER TABLE clients ADD COLUMN plan TEXT CONSTRAINT client_plan CHECK (plan <> '');
CREATE INDEX clients_plan ON clients (namespace, plan) WHERE plan IS NOT NULL;

DROP TRIGGER clients_text_inserted;
CREATE TRIGGER clients_text_inserted BEFORE INSERT ON clients
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_texts VALUES (NEW.namespace || ' ' || NEW.client_key || ' ' || coalesce(NEW.tier, '')
            || ' ' || coalesce(NEW.organisation, '') || ' ' || NEW.attributes || ' ' || coalesce(NEW.plan, ''));
END;
DROP TRIGGER clients_text_updated;
CREATE TRIGGER clients_text_updated BEFORE UPDATE OF namespace, client_key, tier, organisation, attributes, plan ON clients
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_texts VALUES (NEW.namespace || ' ' || NEW.client_key || ' ' || coalesce(NEW.tier, '')
            || ' ' || coalesce(NEW.organisation, '') || ' ' || NEW.attributes || ' ' || coalesce(NEW.plan, ''));
END;

CREATE TRIGGER rate_limit_plans_text_inserted BEFORE INSERT ON rate_limit_plans
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_texts VALUES (NEW.namespace || ' ' || NEW.plan_id || ' ' || coalesce(NEW.extends, '')
            || ' ' || NEW.limits || ' ' || NEW.description);
END;
CREATE TRIGGER rate_limit_plans_text_updated BEFORE UPDATE OF namespace, plan_id, extends, limits, description ON rate_limit_plans
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_texts VALUES (NEW.namespace || ' ' || NEW.plan_id || ' ' || coalesce(NEW.extends, '')
            || ' ' || NEW.limits || ' ' || NEW.description);
END;

CREATE TRIGGER rate_limit_plans_inserted AFTER INSERT ON rate_limit_plans
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed)
    VALUES ('plan', NEW.namespace, NEW.plan_id, 0) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER rate_limit_plans_updated AFTER UPDATE ON rate_limit_plans
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    UPDATE tollgate_state SET writing = 1;
    UPDATE rate_limit_plans SET updated_at = strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')
    WHERE namespace = NEW.namespace AND plan_id = NEW.plan_id AND updated_at = OLD.updated_at;
    UPDATE tollgate_state SET writing = 0;
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed)
    VALUES ('plan', OLD.namespace, OLD.plan_id, 1), ('plan', NEW.namespace, NEW.plan_id, 0)
    ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER rate_limit_plans_deleted AFTER DELETE ON rate_limit_plans
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed)
    VALUES ('plan', OLD.namespace, OLD.plan_id, 1) ON CONFLICT DO NOTHING;
END;
