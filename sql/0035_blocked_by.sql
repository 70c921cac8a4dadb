--! safe: what is dropped is read by nothing; while processes of the release before run, their pause of a host fails, and the job that met it is tried again

alter table origins drop column blocked_by;
