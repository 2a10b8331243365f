#!/usr/bin/env python3
"""A git server over HTTP on loopback for the specs: git_http.py ROOT [--auth USER:PASSWORD] [--tls CERT KEY].

Runs `git http-backend` for the repositories below ROOT. The first part of a path chooses how it behaves:
/plain/REPO and /auth/REPO (Basic) serve; /silent accepts and says nothing; /cut/REPO ends the pack in its middle;
/fault answers 500; /loop asks for credentials whatever comes; /to/HOST:PORT/REST redirects there by http, /tos by https,
/authto and /authtos only after credentials. Prints its port, then one JSON line for each request: {"path", "authorization"}."""
import base64, http.server, json, os, ssl, subprocess, sys, threading

root, auth, tls = os.path.abspath(sys.argv[1]), None, None
if "--auth" in sys.argv:
    auth = "Basic " + base64.b64encode(sys.argv[sys.argv.index("--auth") + 1].encode()).decode()
if "--tls" in sys.argv:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*sys.argv[sys.argv.index("--tls") + 1:][:2])
say_lock = threading.Lock()


def say(**what):
    with say_lock:
        print(json.dumps(what), flush=True)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            parts = []
            while True:
                size = int(self.rfile.readline().split(b";")[0], 16)
                if size == 0:
                    self.rfile.readline()
                    return b"".join(parts)
                parts.append(self.rfile.read(size))
                self.rfile.readline()
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def answer(self, status, headers=(), body=b"", cut=None):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if cut is None else body[:cut])
        if cut is not None:
            self.close_connection = True

    def ask(self):
        self.answer(401, [("WWW-Authenticate", 'Basic realm="git"')])

    def backend(self, path, query, body, cut):
        env = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": root, "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path,
               "QUERY_STRING": query, "REQUEST_METHOD": self.command, "REMOTE_USER": "tester", "REMOTE_ADDR": "127.0.0.1",
               "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
               "GIT_CONFIG_NOSYSTEM": "1", "HOME": root}
        done = subprocess.run(["git", "-c", "http.receivepack=true", "http-backend"], input=body, env=env,
                              stdout=subprocess.PIPE, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        status, headers = 200, []
        for line in head.decode().split("\r\n"):
            name, _, value = line.partition(": ")
            if name.lower() == "status":
                status = int(value.split()[0])
            elif name:
                headers.append((name, value))
        self.answer(status, headers, content, len(content) // 2 if cut and self.command == "POST" else None)

    def handle_one(self):
        body = self.body()
        path, _, query = self.path.partition("?")
        given = self.headers.get("Authorization")
        say(path=self.path, authorization=given)
        mode, _, rest = path.lstrip("/").partition("/")
        if mode == "silent":
            self.rfile.read(1)  # until the client leaves
            self.close_connection = True
        elif mode == "fault":
            self.answer(500, [("Content-Type", "text/plain")], b"broken")
        elif mode == "loop" or (mode in ("auth", "authto", "authtos") and given != auth):
            self.ask()
        elif mode in ("to", "tos", "authto", "authtos"):
            scheme = "https://" if mode.endswith("s") else "http://"
            self.answer(302, [("Location", scheme + rest + ("?" + query if query else ""))])
        else:
            self.backend("/" + rest, query, body, mode == "cut")

    do_GET = do_POST = handle_one


class Server(http.server.ThreadingHTTPServer):
    def finish_request(self, request, client_address):
        if tls:
            try:
                request = tls.wrap_socket(request, server_side=True)
            except OSError:  # the client does not like our certificate
                return
        super().finish_request(request, client_address)


server = Server(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
