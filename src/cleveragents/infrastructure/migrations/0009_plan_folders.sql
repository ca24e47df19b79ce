-- Where the plan file lies, as JSON: its Python functions are looked for there, also by `resume`.
-- Relative to the tree when it lies in it; NULL when the plan came from no file.

ALTER TABLE plans ADD COLUMN folder TEXT;
