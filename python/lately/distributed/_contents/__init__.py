"""The contents of a site: a filter, or a part of one."""
