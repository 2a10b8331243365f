--- The HTTP status of each error code, for documents. The server itself takes it from src/base/err.h; a test compares them.
return {
  invalid_json = 400, invalid_request = 400, invalid_path = 400, not_a_directory = 400, is_a_directory = 400,
  not_a_regular_file = 400, invalid_regex = 400, bad_cwd = 400, not_executable = 400, url_not_allowed = 400,
  unauthorized = 401,
  path_outside_base = 403, base_dir_protected = 403, permission_denied = 403, protected_variable = 403,
  signal_not_allowed = 403, capability_disabled = 403, host_not_allowed = 403, origin_not_allowed = 403,
  not_found = 404, file_not_found = 404, command_not_found = 404, process_not_found = 404, terminal_not_found = 404,
  executable_not_found = 404, repository_not_found = 404, reference_not_found = 404, operation_not_found = 404,
  method_not_allowed = 405, request_timeout = 408,
  already_exists = 409, not_empty = 409, already_exited = 409, stale_write = 409, busy = 409, merge_conflict = 409,
  non_fast_forward = 409, worktree_dirty = 409, ambiguous_edit = 409,
  payload_too_large = 413, uri_too_long = 414, unsupported_media_type = 415, range_not_satisfiable = 416,
  expectation_failed = 417,
  binary_file = 422, checksum_mismatch = 422, element_not_found = 422, javascript_error = 422, navigation_failed = 422,
  too_many_processes = 429, too_many_terminals = 429, too_many_requests = 429, headers_too_large = 431,
  internal_error = 500, git_network = 502, browser_crashed = 502, unavailable = 503, shutting_down = 503,
  handler_timeout = 504, upstream_timeout = 504, no_space = 507,
}
