-- Nothing changes here: SQLite has neither roles nor TRUNCATE. The version keeps step with PostgreSQL's.
SELECT 1;
