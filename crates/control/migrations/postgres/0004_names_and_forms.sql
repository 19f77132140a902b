-- Ids and names of rules: 1 to 64 letters, digits, '.', '_' and '-'; ids are unique, upper and lower case aside.
-- Rows that are there keep theirs and stay in force; a name that is not there yet must be of this form. Tollgate checks
-- what it writes itself.

CREATE INDEX rate_limit_rules_folded ON rate_limit_rules (namespace, lower(rule_id COLLATE "C"));

-- Temporary objects last, as in 0003_by_hand.sql.
SELECT set_config('search_path', string_agg(quote_ident(name), ', ' ORDER BY place) || ', pg_temp', TRUE)
FROM unnest(current_schemas(FALSE)) WITH ORDINALITY AS searched (name, place) WHERE name NOT LIKE 'pg\_temp%';

CREATE FUNCTION tollgate_rule_name() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    fresh_id   BOOLEAN := TRUE;
    fresh_name BOOLEAN := NEW.name <> '';
    form       TEXT := 'Use 1 to 64 letters, digits, ".", "_" and "-".';
BEGIN
    IF TG_OP = 'UPDATE' THEN
        fresh_id := NEW.rule_id <> OLD.rule_id OR NEW.namespace <> OLD.namespace;
        fresh_name := NEW.name <> OLD.name;
    ELSIF EXISTS (SELECT 1 FROM rate_limit_rules WHERE namespace = NEW.namespace AND rule_id = NEW.rule_id) THEN
        RETURN NEW; -- refused as a duplicate, or an UPDATE after ON CONFLICT
    END IF;
    IF fresh_id AND NEW.rule_id !~ '^[A-Za-z0-9._-]{1,64}$' THEN
        RAISE EXCEPTION 'rule_id: % cannot be the id of a rule', quote_literal(left(NEW.rule_id, 100))
            USING ERRCODE = 'check_violation', COLUMN = 'rule_id', HINT = form;
    END IF;
    IF fresh_name AND NEW.name !~ '^[A-Za-z0-9._-]{1,64}$' THEN
        RAISE EXCEPTION 'name: % cannot be the name of a rule', quote_literal(left(NEW.name, 100))
            USING ERRCODE = 'check_violation', COLUMN = 'name', HINT = form;
    END IF;
    IF fresh_id AND EXISTS (SELECT 1 FROM rate_limit_rules WHERE namespace = NEW.namespace AND rule_id <> NEW.rule_id
                            AND lower(rule_id COLLATE "C") = lower(NEW.rule_id COLLATE "C")
                            AND (TG_OP = 'INSERT' OR rule_id <> OLD.rule_id OR namespace <> OLD.namespace)) THEN
        RAISE EXCEPTION 'rule_id: another rule of this namespace has the id % in other upper and lower case',
            quote_literal(NEW.rule_id)
            USING ERRCODE = 'unique_violation', COLUMN = 'rule_id', HINT = 'Use another id.';
    END IF;
    RETURN NEW;
END $$;

REVOKE ALL ON FUNCTION tollgate_rule_name() FROM PUBLIC;

CREATE TRIGGER rate_limit_rules_name BEFORE INSERT OR UPDATE OF namespace, rule_id, name ON rate_limit_rules
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on')
EXECUTE FUNCTION tollgate_rule_name();

-- The Unicode form in which values of a namespace are compared and counted.
ALTER TABLE rate_limit_namespaces ADD COLUMN normalize TEXT NOT NULL DEFAULT 'none'
    CONSTRAINT namespace_normalize CHECK (normalize IN ('none', 'nfc', 'nfkc'));
