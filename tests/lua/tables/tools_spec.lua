local stubs = require("tests.lua.tables.stubs")
local json = require("abx.json")
local tools = require("abx.tools")

-- The first lines of what these say: here and there, now and in years gone by.
local SAID = {
  bash = { "GNU bash, version 5.2.15(1)-release (x86_64-pc-linux-gnu)", "5.2.15" },
  bun = { "1.0.25\n", "1.0.25" },
  cargo = { "cargo 1.75.0-nightly (1d8b05cdd 2023-11-20)", "1.75.0-nightly" },
  chromium = { "Chromium 120.0.6099.109 built on Debian 12.4, running on Debian 12.4", "120.0.6099.109" },
  clang = { "Debian clang version 14.0.6\nTarget: x86_64-pc-linux-gnu", "14.0.6" },
  cmake = { "cmake version 3.28.0-rc1\n\nCMake suite", "3.28.0-rc1" },
  curl = { "curl 7.88.1 (x86_64-pc-linux-gnu) libcurl/7.88.1 OpenSSL/3.0.11", "7.88.1" },
  deno = { "deno 1.40.2 (release, x86_64-unknown-linux-gnu)\nv8 12.1.285.6", "1.40.2" },
  docker = { "Docker version 24.0.7, build afdd53b", "24.0.7" },
  gcc = { "gcc (Alpine 13.2.1_git20231014) 13.2.2 20231014", "13.2.2" },
  git = { "git version 2.39.3 (Apple Git-145)", "2.39.3" },
  go = { "go version go1.22rc1 linux/amd64", "1.22rc1" },
  java = { 'java version "1.8.0_391"\nJava(TM) SE Runtime Environment', "1.8.0_391" },
  jq = { "jq-1.7.1", "1.7.1" },
  make = { "GNU Make 4.3\nBuilt for x86_64-pc-linux-gnu", "4.3" },
  node = { "v20.11.0", "20.11.0" },
  npm = { "10.2.4", "10.2.4" },
  perl = { "\nThis is perl 5, version 36, subversion 0 (v5.36.0) built for x86_64-linux-gnu-thread-multi", "5.36.0" },
  php = { "PHP 8.2.7 (cli) (built: Jun  9 2023 19:37:27) (NTS)", "8.2.7" },
  pip = { "pip 23.0.1 from /usr/lib/python3/dist-packages/pip (python 3.11)", "23.0.1" },
  pnpm = { "8.14.1", "8.14.1" },
  python3 = { "Python 3.13.0rc1+", "3.13.0rc1+" },
  rg = { "ripgrep 13.0.0\n-SIMD -AVX (compiled)", "13.0.0" },
  ruby = { "ruby 3.1.2p20 (2022-04-12 revision 4491bb740a) [x86_64-linux-gnu]", "3.1.2p20" },
  rustc = { "rustc 1.75.0 (82e1608df 2023-12-21)", "1.75.0" },
  sqlite3 = { "3.40.1 2022-12-28 14:03:47 df5c253c0b3dd24916e4ec7cf77d3db5294cc9fd45ae7b9c5e82ad8197f3alt1", "3.40.1" },
  tar = { "tar (GNU tar) 1.34", "1.34" },
  uv = { "uv 0.4.0 (d9bd3bc7a 2024-08-28)", "0.4.0" },
  wget = { "GNU Wget 1.21.3 built on linux-gnu.", "1.21.3" },
  yarn = { "1.22.19", "1.22.19" },
}

describe("versions of tools", function()
  it("are what they say of themselves", function()
    local expected = {}
    for name, said in pairs(SAID) do
      expected[name] = said[2]
    end
    function stubs.find_program(name)
      return "/bin/" .. name, "fingerprint"
    end
    function stubs.start(spec)
      assert.equal("helper", spec.kind)
      assert.is_nil(spec.command)
      local said = SAID[spec.argv[1]:match("[^/]+$")]
      return setmetatable({
        wait = function()
          return true
        end,
        captured = function()
          return { stdout = said[1], stderr = "", stdout_bytes = #said[1], stderr_bytes = 0 }
        end,
      }, { __close = function() end })
    end
    assert.same(expected, tools.versions())
  end)

  it("are null where there is none, whatever it was before", function()
    function stubs.find_program() end
    for name in pairs(SAID) do
      assert.equal(json.null, tools.versions()[name])
    end
  end)

  it("are unknown where it cannot be started, and it is tried again where it may later", function()
    local code, tries = "too_many_processes", 0
    function stubs.find_program(name)
      if name == "git" then
        return "/bin/git", "another fingerprint"
      end
    end
    function stubs.start()
      tries = tries + 1
      return nil, code, "why"
    end
    for _ = 1, 2 do
      assert.equal("unknown", tools.versions().git)
    end
    assert.equal(2, tries)
    code = "not_executable"
    for _ = 1, 2 do
      assert.equal("unknown", tools.versions().git)
    end
    assert.equal(3, tries)
  end)
end)
