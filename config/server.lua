-- The server's configuration: read at start only. Each key is also a variable (ABX_SERVER_BASE_DIR, ABX_SERVER_LIMITS_CPU_MS)
-- and a flag (--base-dir, --limits-cpu-ms); a flag beats a variable, a variable beats this file. Lists are written there with
-- commas or blanks (--packs "openapi mine"). All values below are the built-in ones: take away the dashes to change one.
return {
  -- host = "127.0.0.1",           -- address to listen on; any but loopback needs a token
  -- port = 8080,                  -- REST; 0 lets the kernel choose
  -- ws_port = 8081,               -- terminals; port + 1 unless set
  -- base_dir = "/home/user",      -- the directory that clients work in; this file and the tables must lie outside

  -- Better in ABX_SERVER_TOKEN or a file than here. Without a token the server listens on loopback only.
  -- token = nil,
  -- token_file = nil,             -- a file that holds it
  -- allow_unauthenticated = false, -- listen beyond loopback without a token all the same
  -- allowed_hosts = {},           -- names in Host besides the loopback ones, without port, as "box.example.org"
  -- allowed_origins = {},         -- web pages that may call, as "https://app.example.org"

  -- enabled_groups = nil,         -- exactly these, with core ({}: core alone); unless set: commands, file_ops, process, system,
                                   -- terminal
  -- disabled_groups = {},         -- take these away; core is always on
  -- packs = { "openapi", "extras" }, -- files of lua/packs to load

  -- lua_dir = nil,                -- holds groups, routes, packs; unless set, the one beside the program
  -- workers_dir = nil,            -- holds the programs that run code and the browser; unless set, the one beside the program
  -- commands = nil,               -- the registered commands; unless set, commands.lua beside this file
  -- watch = false,                -- reload the tables when a file of theirs changes; SIGHUP does so at any time

  -- log_level = "info",           -- debug, info, warn, error or off
  -- log_format = "json",          -- json or text

  -- ws_public_url = nil,          -- what clients call the terminal port, as "wss://box.example.org/term"
  -- What the browser may reach in any case, as { "intranet", "10.0.0.5:8080", "*.corp.example" }: names and addresses, also
  -- link-local ones and the server's own ports, which are refused else. Loopback is not refused.
  -- browser = { allow_hosts = {} },
  -- mcp = { tools = {} },         -- patterns of the routes shown as MCP tools; unless set, all (no effect in this version)

  -- limits = {
  --   requests = 512,             -- running at once; past it 429
  --   processes = 512,            -- living at once; past it 429
  --   terminals = 256,            -- living at once; past it 429
  --   connections = 1024,         -- open at once
  --   cpu_ms = 500,               -- of a handler between two waits; past it 504
  --   task_memory_mib = 64,       -- Lua memory of one request; past it 500
  --   head_timeout_ms = 10000,    -- for a request's head to arrive
  --   body_timeout_ms = 30000,    -- between two pieces of a body
  --   idle_timeout_s = 75,        -- for a connection without a request
  -- },
}
