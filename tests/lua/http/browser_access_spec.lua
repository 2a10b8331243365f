local browser = require("support.browser")
local check = require("support.check")
local files = require("support.files")
local http = require("support.http")
local pages = require("support.pages")

describe("the browser cannot reach", function()
  local abxd, web

  lazy_setup(function()
    web = pages.start { ["index.html"] = "<title>index</title><p>index" }
    abxd = browser.server { env = { ABX_SERVER_TOKEN = "tok-7Qd1" } }
    browser.go(abxd, web:url("index.html"))
  end)
  lazy_teardown(function()
    abxd:stop()
    web:stop()
  end)

  --- Requests that the server itself has logged and that this spec did not make: its own carry the token.
  local function strays()
    local count = 0
    for _, line in ipairs(abxd:log()) do
      count = count + (line.status == 401 and 1 or 0)
    end
    return count
  end

  it("anything but http, https, data and about:blank", function()
    for _, url in ipairs { "file:///etc/passwd", "FILE:///etc/passwd", "javascript:alert(1)", "chrome://version",
      "view-source:http://localhost/", "chrome-error://x", "about:version", "about:srcdoc", "blob:null/x",
      "filesystem:http://localhost/x", "ftp://localhost/", "ws://localhost/", "devtools://devtools/x",
      " file:///etc/passwd", "file\t:///etc/passwd", "view-source:file:///etc/passwd" } do
      browser.problem(abxd, "navigate", { url = url }, 400, "url_not_allowed", "url")
    end
    for _, url in ipairs { "example.com", "", "/index.html", "http://", "http://[::1", "http://a b/" } do
      browser.problem(abxd, "navigate", { url = url }, 400, "invalid_request", "url")
    end
  end)

  it("local files by what a page does", function()
    files.write(abxd.base_dir .. "/secret.txt", "the secret")
    local secret = "file://" .. abxd.base_dir .. "/secret.txt"
    for _, origin in ipairs { web:url("index.html"), "data:text/html,<body>", "about:blank" } do
      browser.go(abxd, origin)
      local got = browser.value(abxd, [[async (url) => {
        const tried = [];
        tried.push(await fetch(url).then((r) => r.text(), (e) => 'refused'));
        tried.push(await new Promise((resolve) => {
          const request = new XMLHttpRequest();
          request.onload = () => resolve(request.responseText);
          request.onerror = () => resolve('refused');
          try { request.open('GET', url); request.send(); } catch { resolve('refused'); }
        }));
        const frame = document.createElement('iframe');
        frame.src = url;
        document.body.append(frame);
        await new Promise((resolve) => { frame.onload = resolve; setTimeout(resolve, 300); });
        try { tried.push(frame.contentDocument?.body?.innerText || 'refused'); } catch { tried.push('refused'); }
        open(url);
        const link = document.createElement('a');
        link.href = url;
        document.body.append(link);
        link.click();
        location.href = url;
        return tried;
      }]], { arg = secret })
      assert.same({ "refused", "refused", "refused" }, got, origin)
      assert.is_nil(browser.ok(abxd, "content", { format = "text" }).content:find("the secret", 1, true))
    end
    for _, text in ipairs { "<meta http-equiv=refresh content='0;url=%s'>", "<iframe src='%s'></iframe>",
      "<object data='%s'></object>", "<embed src='%s'>" } do
      web:put("leads.html", text:format(secret))
      browser.go(abxd, web:url("leads.html"))
      local pdf = browser.ask(abxd, "pdf")
      assert.is_nil(pdf.body:find("the secret", 1, true))
      assert.is_nil(browser.pdf_text(pdf.body):find("the secret", 1, true))
    end
    browser.problem(abxd, "navigate", { url = web:url("to?" .. secret) }, 400, "url_not_allowed", "url")
  end)

  it("the server itself, by navigation or redirect", function()
    local before = strays()
    for _, host in ipairs { "127.0.0.1", "localhost", "LOCALHOST.", "[::1]", "0.0.0.0", "127.1", "0x7f000001", "2130706433",
      "[::ffff:127.0.0.1]", "x.localhost" } do
      for _, port in ipairs { abxd.port, abxd.ws_port } do
        local url = ("http://%s:%d/health"):format(host, port)
        assert.matches("server's own", browser.problem(abxd, "navigate", { url = url }, 400, "url_not_allowed", "url").detail)
        browser.problem(abxd, "navigate", { url = web:url("to?" .. url) }, 400, "url_not_allowed", "url")
        browser.problem(abxd, "navigate", { url = url:gsub("^http", "https") }, 400, "url_not_allowed", "url")
      end
    end
    assert.equal("index", browser.go(abxd, web:url("index.html")).title)
    assert.equal(before, strays())
  end)

  it("link-local addresses and metadata services", function()
    for _, host in ipairs { "169.254.169.254", "[::ffff:169.254.169.254]", "0xa9fea9fe", "2852039166", "[fe80::1]",
      "[fd00:ec2::254]", "100.100.100.200" } do
      for _, scheme in ipairs { "http", "https" } do
        local url = ("%s://%s/latest/meta-data/"):format(scheme, host)
        browser.problem(abxd, "navigate", { url = url }, 400, "url_not_allowed", "url")
      end
    end
    browser.problem(abxd, "navigate", { url = web:url("to?http://169.254.169.254/") }, 400, "url_not_allowed", "url")
  end)

  it("the server itself by what a page does", function()
    browser.go(abxd, web:url("index.html"))
    local before = strays()
    local got = browser.value(abxd, [[async ({port, ws}) => {
      const base = `127.0.0.1:${port}`, tried = {};
      const quietly = (promise) => promise.then(() => 'reached', () => 'refused');
      tried.fetch = await quietly(fetch(`http://${base}/health`, { mode: 'no-cors' }));
      tried.post = await quietly(fetch(`http://${base}/shell`, { mode: 'no-cors', method: 'POST', body: '{}' }));
      tried.redirect = await quietly(fetch(`/to?http://${base}/health`, { mode: 'no-cors' }));
      const loaded = (element) => new Promise((resolve) => {
        element.onload = () => resolve('reached');
        element.onerror = () => resolve('refused');
        document.body.append(element);
      });
      tried.image = await loaded(Object.assign(new Image(), { src: `http://${base}/health` }));
      tried.script = await loaded(Object.assign(document.createElement('script'), { src: `http://${base}/health` }));
      const style = { rel: 'stylesheet', href: `http://${base}/health` };
      tried.style = await loaded(Object.assign(document.createElement('link'), style));
      const socket = (address) => new Promise((resolve) => {
        const one = new WebSocket(address);
        one.onopen = () => resolve('reached');
        one.onerror = () => resolve('refused');
      });
      tried.socket = await socket(`ws://${base}/pty/x`);
      tried.terminal = await socket(`ws://localhost:${ws}/pty/x`);
      tried.events = await new Promise((resolve) => {
        const one = new EventSource(`http://${base}/health`);
        one.onopen = () => resolve('reached');
        one.onerror = () => { one.close(); resolve('refused'); };
      });
      navigator.sendBeacon(`http://${base}/shell`, '{}');
      const code = `fetch('http://${base}/health', {mode: 'no-cors'})
        .then(() => postMessage('reached'), () => postMessage('refused'))`;
      tried.worker = await new Promise((resolve) => {
        new Worker(URL.createObjectURL(new Blob([code]))).onmessage = (event) => resolve(event.data);
      });
      for (const rel of ['prefetch', 'preconnect', 'dns-prefetch', 'preload'])
        document.head.append(Object.assign(document.createElement('link'), { rel, href: `http://${base}/health`, as: 'script' }));
      const form = document.body.appendChild(Object.assign(document.createElement('form'), {
        method: 'post', action: `http://${base}/shell`, target: 'f' }));
      document.body.append(Object.assign(document.createElement('iframe'), { name: 'f' }));
      form.submit();
      try {
        const turn = { urls: `turn:${base}?transport=tcp`, username: 'a', credential: 'b' };
        const peer = new RTCPeerConnection({ iceServers: [{ urls: `stun:${base}` }, turn] });
        peer.createDataChannel('x');
        await peer.setLocalDescription(await peer.createOffer());
      } catch {}
      await new Promise((resolve) => setTimeout(resolve, 500));
      return tried;
    }]], { arg = { port = abxd.port, ws = abxd.ws_port } })
    for what, outcome in pairs(got) do
      assert.equal("refused", outcome, what)
    end
    assert.is_true(next(got) ~= nil)
    assert.equal(before, strays())
  end)

  it("the server by its own proxy, which says so to nobody else either", function()
    local arguments = browser.processes(abxd)[1].argv
    local proxy_port = tonumber(arguments:match("%-%-proxy%-server=%S-:(%d+)"))
    browser.problem(abxd, "navigate", { url = ("http://127.0.0.1:%d/"):format(proxy_port) }, 400, "url_not_allowed", "url")
    local conn = http.connect({ host = "127.0.0.1", port = proxy_port }, 20)
    conn:send(("GET http://127.0.0.1:%d/health HTTP/1.1\r\nHost: x\r\n\r\n"):format(abxd.port))
    assert.is_nil(conn:read_response("GET"))
    conn:close()
  end)

  it("what the operator has not allowed", function()
    local own <close> = browser.server { args = { "--browser-allow-hosts", "127.0.0.1" } }
    assert.equal(200, browser.go(own, ("http://127.0.0.1:%d/health"):format(own.port)).status)
    browser.problem(own, "navigate", { url = ("http://localhost:%d/health"):format(own.port) }, 400, "url_not_allowed", "url")
  end)

  it("the token of the server", function()
    for _, one in ipairs(browser.processes(abxd)) do
      assert.is_nil(files.read(("/proc/%d/environ"):format(one.pid)):find("tok-7Qd1", 1, true))
    end
    assert.is_nil(files.read(("/proc/%d/environ"):format(browser.worker_pid(abxd))):find("tok-7Qd1", 1, true))
    check.ok(abxd:get("/health"))
  end)
end)
