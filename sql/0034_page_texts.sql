--! safe: two new columns, which earlier processes leave at their defaults

-- The text of the page of a check without an account, so that what shows the quotes can prove them: whether it is kept, and the text
-- in UTF-8, by gzip.
alter table quote_checks add column keeps_text boolean not null default false;
alter table quote_checks add column page_text bytea check (page_text is null or keeps_text);
alter table quote_checks alter column page_text set storage external;
