-- Plans: named sets of rules. Clients and organisations have one, or several over time.

-- Temporary objects last, as in 0003_by_hand.sql.
SELECT set_config('search_path', string_agg(quote_ident(name), ', ' ORDER BY place) || ', pg_temp', TRUE)
FROM unnest(current_schemas(FALSE)) WITH ORDINALITY AS searched (name, place) WHERE name NOT LIKE 'pg\_temp%';

CREATE TABLE rate_limit_plans (
    namespace   TEXT COLLATE "C" NOT NULL DEFAULT 'default' CONSTRAINT plan_namespace CHECK (namespace <> ''),
    plan_id     TEXT COLLATE "C" NOT NULL -- the name of the plan: its rules are named plan.rule
                CONSTRAINT plan_id CHECK (plan_id ~ '^[A-Za-z0-9_-]{1,32}$'),
    extends     TEXT COLLATE "C",                    -- a plan of this namespace whose rules it has too
    is_default  BOOLEAN     NOT NULL DEFAULT FALSE,  -- the plan of clients without one
    limits      JSONB       NOT NULL DEFAULT '[]'    -- rules as in a rules file, each with a name
                CONSTRAINT plan_limits CHECK (jsonb_typeof(limits) = 'array'),
    description TEXT        NOT NULL DEFAULT '',
    created_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    version     BIGINT      NOT NULL DEFAULT 0,      -- the generation that changed it last
    PRIMARY KEY (namespace, plan_id)
);

-- A name, or a JSON list of steps: ["free", {"plan": "pro", "from": "2026-12-01"}].
ALTER TABLE clients ADD COLUMN plan TEXT COLLATE "C" CONSTRAINT client_plan CHECK (plan <> '');
CREATE INDEX clients_plan ON clients (namespace, plan) WHERE plan IS NOT NULL;

CREATE TRIGGER rate_limit_plans_row BEFORE UPDATE ON rate_limit_plans
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on' OR NOT tollgate_writes())
EXECUTE FUNCTION tollgate_sql_row();
CREATE TRIGGER rate_limit_plans_edit AFTER INSERT OR UPDATE OR DELETE ON rate_limit_plans
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on' OR NOT tollgate_writes())
EXECUTE FUNCTION tollgate_sql_edit('plan', 'plan_id');
CREATE TRIGGER rate_limit_plans_emptied AFTER TRUNCATE ON rate_limit_plans
FOR EACH STATEMENT EXECUTE FUNCTION tollgate_sql_truncate();
