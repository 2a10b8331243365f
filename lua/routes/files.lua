--- Files below the base directory: read, written, listed, moved, copied, removed and searched. The answers are JSON that
-- the primitives made; handlers pass them on.
local fs = require("abx.fs")
local mime = require("abx.mime")
local P = require("abx.params")
local shape = require("abx.shape")

local CONTENT_MAX_BYTES = 32 * P.MiB
-- Work on whole trees takes as long as it takes; it ends when its client leaves.
local TREE_DEADLINE_MS = 24 * 60 * 60 * 1000

local PATH_ERRORS = { "invalid_path", "not_a_directory", "path_outside_base", "permission_denied", "file_not_found" }
local CHANGE_ERRORS = P.join(PATH_ERRORS, { "base_dir_protected", "busy", "no_space" })

local ETAG = P.string { doc = "changes whenever the file does", example = '"1a2b-5-17a0c4e2d3f0b1c2-17a0c4e2d3f0b1c2"' }
local TIME = P.string { example = "2026-01-31T12:00:00.000Z" }

local ENTRY_FIELDS = {
  path = P.path { doc = "absolute" },
  name = P.string {},
  type = P.string { example = "file", doc = "file, directory, symlink, fifo, socket, char or block" },
  size = P.integer { min = 0 },
  mode = P.string { example = "0644" },
  owner = P.string { doc = "a name, or the number that has none" },
  group = P.string {},
  modified_at = TIME,
  target = P.optional(P.path { doc = "of a symlink: where it leads, as it is written" }),
}
local ENTRY = P.object { fields = ENTRY_FIELDS, doc = "links are not followed" }

local WRITTEN_FIELDS = { path = P.path {}, size = P.integer { min = 0 }, created = P.boolean {}, etag = ETAG }

-- Of a move and of a copy.
local TRANSFER_PARAMS = {
  source = P.path { required = true, doc = "of a link: the link itself" },
  destination = P.path { required = true, doc = "the new name itself, not a directory to put it into" },
  overwrite = P.boolean { default = false },
  create_parents = P.boolean { default = true },
}

--- The table of options that a primitive gets: those of the parameters that are named.
local function pick(params, ...)
  local options = {}
  for _, name in ipairs { ... } do
    options[name] = params[name]
  end
  return options
end

--- What a primitive made answers 201, what was there 200.
local function created_or_not(answer, created, ...)
  try(answer, created, ...)
  return reply { status = created and 201 or 200, json = answer }
end

return {
  group = "file_ops",
  {
    method = "GET", path = "/files/read", name = "files.read",
    summary = "Read a file, or a part of it",
    description = "Text by lines or bytes, anything else as base64. A character that the end of the part would cut is left "
      .. "out: the next part begins at offset + length.",
    read_only = true, idempotent = true,
    params = {
      path = P.path { required = true },
      encoding = P.choice {
        "auto", "utf-8", "base64",
        doc = "auto: base64, with binary: true, where the bytes are not UTF-8 or hold NUL; utf-8 replaces what is not UTF-8",
      },
      offset = P.integer { min = 0, doc = "in bytes; 0 unless given. From within a character the bytes are no text" },
      length = P.integer {
        min = 0, max = CONTENT_MAX_BYTES,
        doc = "in bytes; 1 MiB unless given. Less than the first character has gives that character whole",
      },
      start_line = P.integer {
        min = 1,
        doc = "from 1; instead of offset and length. Up to 32 MiB are answered, nothing behind the last line. Lines of binaries "
          .. "are refused unless encoding is utf-8 or base64",
      },
      end_line = P.integer { min = 1, doc = "inclusive" },
    },
    returns = P.object {
      doc = "the part",
      fields = {
        path = P.path { doc = "absolute" },
        content = P.string {},
        encoding = P.string { example = "utf-8" },
        binary = P.boolean { doc = "the bytes are no text" },
        lossy = P.optional(P.boolean { doc = "bytes that are not UTF-8 were replaced" }),
        size = P.integer { min = 0, doc = "of the file" },
        offset = P.integer { min = 0, doc = "of the part" },
        length = P.integer { min = 0, doc = "of the part in the file, in bytes" },
        eof = P.boolean { doc = "the part reaches the end" },
        total_lines = P.optional(P.integer { min = 0, doc = "where lines were asked for" }),
        etag = ETAG,
        modified_at = TIME,
      },
    },
    errors = P.join(PATH_ERRORS, {
      "invalid_request", "is_a_directory", "not_a_regular_file", "binary_file", "payload_too_large", "busy",
    }),
    handler = function(req)
      return reply { json = try(fs.read(req.params)) }
    end,
  },
  {
    method = "POST", path = "/files/write", name = "files.write",
    summary = "Write, append to or edit a file",
    description = "Unless it is appended to, the old text or the new one stands there at any moment; writers of one file "
      .. "take turns. With if_match, or with edits, a change that another client made meanwhile is never lost: the answer is "
      .. "409. A link is followed, also to a file that does not exist yet; path in the answer is where it led.",
    destructive = true, body_limit = CONTENT_MAX_BYTES,
    params = {
      path = P.path { required = true },
      content = P.string { doc = "the whole file, or what is appended; this or edits" },
      encoding = P.choice { "utf-8", "base64", doc = "of content" },
      append = P.boolean { default = false, doc = "add to the end, in place; cut back where that fails" },
      overwrite = P.boolean { default = true },
      create_parents = P.boolean { default = true },
      mode = P.string { min = 3, max = 4, doc = "octal; a replaced file's own unless given", example = "0644" },
      if_match = P.string {
        doc = "write only if this is the file's etag; \"*\": only if there is a file. The header If-Match does the same",
      },
      edits = P.array {
        min = 1, max = 1000,
        doc = "one after another; all of them or none",
        of = P.object {
          fields = {
            old = P.string { required = true, min = 1, doc = "must occur exactly once, unless all is true" },
            new = P.string { required = true },
            all = P.boolean { default = false, doc = "each occurrence" },
          },
        },
      },
    },
    returns = {
      [200] = P.object { doc = "the file was there before", fields = WRITTEN_FIELDS },
      [201] = P.object { doc = "the file is new", fields = WRITTEN_FIELDS },
    },
    errors = P.join(CHANGE_ERRORS, {
      "invalid_request", "is_a_directory", "not_a_regular_file", "already_exists", "stale_write", "ambiguous_edit",
      "payload_too_large",
    }),
    handler = function(req)
      local spec = req.params
      spec.if_match = spec.if_match or req.headers["if-match"]
      shape.mode(spec.mode, "mode")
      return created_or_not(fs.write(spec))
    end,
  },
  {
    method = "GET", path = "/files/list", name = "files.list",
    summary = "List a directory, or a whole tree",
    description = "Sorted by name, a directory before what is in it, links not followed. What cannot be read stands in "
      .. "errors and spoils nothing; so do the server's own files, file systems of the kernel in a tree, and directories "
      .. "below the 64th. A page may be shorter than limit where it is large.",
    read_only = true, idempotent = true, deadline_ms = TREE_DEADLINE_MS,
    params = {
      path = P.path { default = "." },
      recursive = P.boolean { default = false },
      max_depth = P.integer { min = 1, max = 1024, default = 64, doc = "of a recursive list; 1: the directory itself" },
      hidden = P.boolean { default = true, doc = "also names that begin with a dot" },
      glob = P.string {
        min = 1, max = 1024, example = "*.lua",
        doc = "without / it matches names, with / the relative path; * stops at /, ** does not",
      },
      limit = P.integer { min = 1, max = 10000, default = 1000 },
      cursor = P.string { doc = "next_cursor of the last page; it stays good while entries come and go" },
    },
    returns = P.object {
      doc = "a page",
      fields = {
        path = P.path {},
        entries = P.array { of = ENTRY },
        truncated = P.boolean { doc = "there is more: see next_cursor" },
        next_cursor = P.string { nullable = true },
        errors = P.array {
          doc = "what could not be read",
          of = P.object { fields = { path = P.path {}, code = P.string { example = "permission_denied" } } },
        },
      },
    },
    errors = P.join(PATH_ERRORS, { "invalid_request" }),
    handler = function(req)
      local params = req.params
      return reply {
        json = try(fs.list(params.path,
          pick(params, "recursive", "max_depth", "hidden", "glob", "limit", "cursor"))),
      }
    end,
  },
  {
    method = "GET", path = "/files/stat", name = "files.stat",
    summary = "Look at a file, directory or link",
    description = "Of a link it tells the link's own size, times and etag.",
    read_only = true, idempotent = true, deadline_ms = TREE_DEADLINE_MS,
    params = {
      path = P.path { required = true, doc = "of a link: the link itself" },
      checksum = P.choice { "none", "sha256", doc = "of a regular file's content" },
    },
    returns = P.object {
      fields = P.merge(ENTRY_FIELDS, {
        inode = P.integer { min = 0 },
        links = P.integer { min = 0 },
        uid = P.integer { min = 0 },
        gid = P.integer { min = 0 },
        accessed_at = TIME,
        changed_at = TIME,
        mime = P.string { doc = "by the name's extension", example = "text/plain; charset=utf-8" },
        etag = ETAG,
        sha256 = P.optional(P.string { min = 64, max = 64 }),
      }),
    },
    errors = P.join(PATH_ERRORS, { "not_a_regular_file", "is_a_directory", "busy" }),
    handler = function(req)
      local params = req.params
      return reply { json = try(fs.stat(params.path, { checksum = params.checksum, mime = mime.of(params.path) })) }
    end,
  },
  {
    method = "POST", path = "/files/mkdir", name = "files.mkdir",
    summary = "Make a directory",
    description = "201 where it was made, 200 where it stood there already, perhaps behind a link. Where something else is in "
      .. "the way, a link that leads nowhere too, 409.",
    idempotent = true,
    params = {
      path = P.path { required = true },
      parents = P.boolean { default = true, doc = "also the directories on the way" },
      mode = P.string { min = 3, max = 4, doc = "octal, of a new directory; by the umask unless given", example = "0755" },
    },
    returns = {
      [200] = P.object { doc = "it was there", fields = { path = P.path {}, created = P.boolean {} } },
      [201] = P.object { doc = "it is new", fields = { path = P.path {}, created = P.boolean {} } },
    },
    errors = P.join(CHANGE_ERRORS, { "invalid_request", "already_exists", "not_a_regular_file" }),
    handler = function(req)
      local params = req.params
      return created_or_not(fs.mkdir(params.path, { parents = params.parents, mode = shape.mode(params.mode, "mode") }))
    end,
  },
  {
    method = "DELETE", path = "/files/delete", name = "files.delete",
    summary = "Remove a file, link or directory",
    description = "Of a link the link, never its target; never the base directory. A tree is removed up to the first entry "
      .. "that cannot go (forbidden, one of the server's own files, or a mount point, whose content stays): what went until "
      .. "then is gone.",
    destructive = true, deadline_ms = TREE_DEADLINE_MS,
    params = {
      path = P.path { required = true },
      recursive = P.boolean { default = false, doc = "a directory with all that is in it" },
    },
    returns = P.object {
      fields = { path = P.path {}, deleted = P.integer { min = 0, doc = "how many entries" } },
    },
    errors = P.join(CHANGE_ERRORS, { "not_empty", "not_a_regular_file" }),
    handler = function(req)
      local params = req.params
      return reply { json = try(fs.delete(params.path, { recursive = params.recursive })) }
    end,
  },
  {
    method = "POST", path = "/files/move", name = "files.move",
    summary = "Move or rename",
    description = "Across file systems it copies, verifies and then removes the source.",
    destructive = true, deadline_ms = TREE_DEADLINE_MS,
    params = TRANSFER_PARAMS,
    returns = P.object {
      fields = { source = P.path {}, destination = P.path {}, entry = ENTRY },
    },
    errors = P.join(CHANGE_ERRORS, {
      "invalid_request", "is_a_directory", "not_a_regular_file", "already_exists", "not_empty",
    }),
    handler = function(req)
      local params = req.params
      return reply {
        json = try(fs.move(params.source, params.destination, pick(params, "overwrite", "create_parents"))),
      }
    end,
  },
  {
    method = "POST", path = "/files/copy", name = "files.copy",
    summary = "Copy a file or a tree",
    description = "Links stay links; modes and times are kept. A directory onto a directory, with overwrite, adds to it.",
    destructive = true, deadline_ms = TREE_DEADLINE_MS,
    params = TRANSFER_PARAMS,
    returns = P.object {
      fields = {
        source = P.path {},
        destination = P.path {},
        files = P.integer { min = 0, doc = "regular files" },
        bytes = P.integer { min = 0, doc = "their content" },
        entry = ENTRY,
      },
    },
    errors = P.join(CHANGE_ERRORS, {
      "invalid_request", "is_a_directory", "not_a_regular_file", "already_exists",
    }),
    handler = function(req)
      local params = req.params
      return reply {
        json = try(fs.copy(params.source, params.destination, pick(params, "overwrite", "create_parents"))),
      }
    end,
  },
  {
    method = "POST", path = "/files/search", name = "files.search",
    summary = "Search the content of files",
    description = "For a regular expression (PCRE2) or a plain text, line by line. Binary files are left out, links not "
      .. "followed.",
    read_only = true, idempotent = true,
    params = {
      path = P.path { default = ".", doc = "a directory or one file" },
      pattern = P.string { required = true, min = 1, max = 64 * P.KiB },
      regex = P.boolean { default = true, doc = "false: pattern is plain text" },
      case_sensitive = P.boolean { default = true },
      glob = P.string { min = 1, max = 1024, doc = "only files that match; as in /files/list", example = "*.c" },
      exclude = P.array {
        of = P.string { min = 1, max = 1024 }, max = 100, default = { ".git", "node_modules" },
        doc = "globs of files and directories to leave out; in place of the default ones",
      },
      context = P.integer { min = 0, max = 20, default = 0, doc = "lines before and after each match" },
      max_results = P.integer { min = 1, max = 10000, default = 500 },
      timeout_ms = P.integer { min = 1, max = 600000, default = 30000, doc = "then it answers what it has found" },
    },
    returns = P.object {
      fields = {
        matches = P.array {
          of = P.object {
            doc = "a line that matches, at its first match",
            fields = {
              path = P.path {},
              line = P.integer { min = 1 },
              column = P.integer { min = 1, doc = "in bytes" },
              text = P.string { doc = "the line, or 1000 bytes of it around the match" },
              line_truncated = P.boolean {},
              lossy = P.optional(P.boolean { doc = "bytes that are not UTF-8 were replaced" }),
              before = P.array { of = P.string {} },
              after = P.array { of = P.string {} },
            },
          },
        },
        truncated = P.boolean { doc = "there are more than max_results, or than 16 MiB hold" },
        timed_out = P.boolean {},
        files_searched = P.integer { min = 0 },
        unreadable = P.optional(P.integer { min = 1, doc = "files and directories left out, as they may not be read" }),
        lines_given_up = P.optional(P.integer { min = 1, doc = "lines on which pattern took more steps than is sensible" }),
      },
    },
    errors = P.join(PATH_ERRORS, { "invalid_request", "invalid_regex", "not_a_regular_file" }),
    handler = function(req)
      local params = req.params
      return reply {
        json = try(fs.search(pick(params, "path", "pattern", "regex", "case_sensitive", "glob", "exclude", "context",
          "max_results", "timeout_ms"))),
      }
    end,
  },
}
