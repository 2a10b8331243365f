/* abx.fs as handlers use it: in a real generation, with bodies and streams played by the test. */
#include "../prim/tree.h"

#include "base/log.h"
#include "bind/host.h"
#include "model/body.h"
#include "model/response.h"
#include "script/task.h"

enum { PIECE_BYTES = 100000, BIG_BYTES = 200 * PIECE_BYTES, HELPER_BYTES = 3000000 };

static const char group_lua[] = "return { name = 'test', description = 'for tests' }";
static const char routes_lua[] =
    "local fs = require('abx.fs')\n"
    "local function route(name, handler)\n"
    "  return { method = 'POST', path = '/' .. name, name = name, summary = name, body = 'stream', handler = handler "
    "}\n"
    "end\n"
    "local function upload(options)\n"
    "  return function(req) return try(fs.upload(req.body, options)) end\n"
    "end\n"
    "local function archive(path)\n"
    "  return function()\n"
    "    local archive = try(fs.archive(path, 'tar.gz'))\n"
    "    return reply { headers = { ['X-Name'] = archive.name }, stream = function(out) archive:stream(out) end }\n"
    "  end\n"
    "end\n"
    "return { group = 'test',\n"
    "  route('open', function() return reply { file = try(fs.open_file('d/f')) } end),\n"
    "  route('open.outside', function() return reply { file = try(fs.open_file('../out/secret')) } end),\n"
    "  route('upload', upload { path = 'new', mode = '0600' }),\n"
    "  route('upload.bytes', upload { path = 'b\\xa4' }),\n"
    "  route('upload.outside', upload { path = '../out/new' }),\n"
    "  route('upload.twice', function(req)\n"
    "    fs.upload(req.body, { path = 'new' })\n"
    "    return fs.upload(req.body, { path = 'newer' })\n"
    "  end),\n"
    "  route('write.file', function()\n"
    "    return reply { json = try(fs.write { path = 'new/f', file = try(fs.open_file('d/f')) }) }\n"
    "  end),\n"
    "  route('write.outside', function()\n"
    "    return reply { json = try(fs.write { path = '../out/f', file = try(fs.open_file('d/f')) }) }\n"
    "  end),\n"
    "  route('write.twice', function()\n"
    "    local file = try(fs.open_file('d/f'))\n"
    "    try(fs.write { path = 'once', file = file })\n"
    "    return reply { json = try(fs.write { path = 'twice', file = file }) }\n"
    "  end),\n"
    "  route('write.both', function()\n"
    "    return reply { json = try(fs.write { path = 'both', content = '', file = try(fs.open_file('d/f')) }) }\n"
    "  end),\n"
    "  route('write.word', function() return reply { json = try(fs.write { path = 'word', file = 'd/f' }) } end),\n"
    "  route('archive', archive('d')),\n"
    "  route('archive.fails', archive('bad')),\n"
    "  route('archive.file', archive('d/f')),\n"
    "}\n";
/* In the helper's place: the same arguments and descriptors. */
static const char helper_sh[] = "#!/bin/sh\n"
                                "test $(stat -L -c %F /proc/self/fd/0) = directory || exit 3\n"
                                "echo \"$1 $2 $3\"\n"
                                "test \"$3\" = bad || exec head -c 3000000 /dev/zero\n"
                                "head -c 3000000 /dev/zero\n"
                                "echo 'cannot read x' >&2\n"
                                "exit 1\n";

struct stage {
    struct tree *tree;
    struct host host;
    struct generation *generation;
    char helper[PATH_MAX], lua_dir[PATH_MAX];
    size_t handles_before;
    /* the request in hand */
    struct request request;
    struct body body;
    struct task *task;
    bool woken, over;
    struct response response;
    struct err err;
};

static void on_response(void *ctx, struct response *response)
{
    struct stage *stage = ctx;
    stage->response = *response;
    response_init(response);
}

static void on_error(void *ctx, const struct err *err)
{
    ((struct stage *)ctx)->err = *err;
}

static void on_end(void *ctx)
{
    ((struct stage *)ctx)->over = true;
}

static void on_wake(void *net)
{
    ((struct stage *)net)->woken = true;
}

static void begin(struct stage *stage, const char *route)
{
    static const struct task_events events = {on_response, on_error, on_end};
    stage->request = (struct request){.id = "test", .method = "POST", .target = "/", .body = &stage->body};
    stage->request.params.type = VALUE_OBJECT;
    arena_init(&stage->request.arena, 1024 * 1024);
    stage->body = (struct body){.loop = stage->host.loop, .wake = on_wake, .net = stage};
    response_init(&stage->response);
    stage->err = (struct err){0};
    stage->over = false;
    for (size_t i = 0; i < generation_route_count(stage->generation); i++) {
        stage->request.route = generation_route(stage->generation, i);
        if (strcmp(stage->request.route->name, route) == 0)
            break;
    }
    task_start(stage->generation, stage->request.route, &stage->request, &events, stage, &stage->task);
    loop_turn(stage->host.loop, false);
}

static void run_to_end(struct stage *stage)
{
    while (!stage->over)
        loop_turn(stage->host.loop, true);
}

/* The request's memory goes, as the pipeline does it. */
static void end(struct stage *stage)
{
    body_drop(&stage->body);
    response_deinit(&stage->response);
    arena_deinit(&stage->request.arena);
    while (loop_jobs_running(stage->host.loop) > 0)
        loop_turn(stage->host.loop, true);
}

static const char *text_body(struct stage *stage)
{
    static char text[2048];
    assert_string_equal(stage->err.text, "");
    assert_int_equal(stage->response.kind, RESPONSE_BYTES);
    snprintf(text, sizeof(text), "%.*s", (int)stage->response.bytes.len, stage->response.bytes.data);
    return text;
}

static void test_open_file(void **state)
{
    struct stage *stage = *state;
    begin(stage, "open");
    run_to_end(stage);
    assert_int_equal(stage->response.kind, RESPONSE_FILE);
    assert_int_equal(stage->response.file.size, 5);
    assert_int_equal(stage->response.file.length, 5);
    assert_string_equal(text_of(stage->response.file.fd), "inner");
    assert_memory_equal(strchr(stage->response.file.etag, '-'), "-5-", 3);
    char etag[sizeof(stage->response.file.etag)];
    struct stat found;
    memcpy(etag, stage->response.file.etag, sizeof(etag));
    assert_int_equal(fstat(stage->response.file.fd, &found), 0);
    end(stage);
    /* as long, and its modification time set back: only the change time tells */
    do {
        usleep(2000);
        tree_file(stage->tree, "ws/d/f", "other");
        assert_int_equal(
            utimensat(AT_FDCWD, tree_path(stage->tree, "ws/d/f"), (struct timespec[]){found.st_atim, found.st_mtim}, 0),
            0);
        struct stat now;
        assert_int_equal(stat(tree_path(stage->tree, "ws/d/f"), &now), 0);
        if (now.st_ctim.tv_nsec != found.st_ctim.tv_nsec)
            break;
    } while (true);
    begin(stage, "open");
    run_to_end(stage);
    assert_string_not_equal(stage->response.file.etag, etag);
    end(stage);
    begin(stage, "open.outside");
    run_to_end(stage);
    assert_int_equal(stage->err.code, ERR_PATH_OUTSIDE_BASE);
    assert_string_equal(stage->err.field, "path");
    end(stage);
    begin(stage, "open");
    task_cancel(stage->task); /* while the job runs */
    end(stage);
}

static void test_small_upload(void **state)
{
    struct stage *stage = *state;
    begin(stage, "upload");
    assert_int_equal(body_push(&stage->body, "abc", 3), 3);
    body_end(&stage->body, true);
    run_to_end(stage);
    assert_non_null(strstr(text_body(stage), "/ws/new\""));
    assert_non_null(strstr(text_body(stage), "\"created\":true"));
    assert_non_null(strstr(text_body(stage), "\"size\":3"));
    assert_non_null(strstr(text_body(stage), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
    assert_null(strstr(text_body(stage), "path_base64"));
    assert_string_equal(tree_text(stage->tree, "ws/new"), "abc");
    end(stage);
    begin(stage, "upload.bytes");
    body_end(&stage->body, true); /* nothing at all came */
    run_to_end(stage);
    assert_non_null(strstr(text_body(stage), "/ws/b\xef\xbf\xbd\""));
    assert_non_null(strstr(text_body(stage), "path_base64"));
    end(stage);
}

static void test_upload_waits_for_the_disk(void **state)
{
    struct stage *stage = *state;
    static char piece[PIECE_BYTES];
    struct stat found;
    size_t total = 0, at = 0, stalls = 0;
    begin(stage, "upload");
    while (total < BIG_BYTES) {
        size_t taken = body_push(&stage->body, piece + at, PIECE_BYTES - at);
        total += taken;
        at = (at + taken) % PIECE_BYTES;
        if (at == 0)
            continue;
        stalls++;
        for (stage->woken = false; !stage->woken;)
            loop_turn(stage->host.loop, true);
    }
    body_end(&stage->body, true);
    run_to_end(stage);
    assert_non_null(strstr(text_body(stage), "\"size\":20000000"));
    assert_true(stalls > 0);
    assert_int_equal(stat(tree_path(stage->tree, "ws/new"), &found), 0);
    assert_int_equal(found.st_size, BIG_BYTES);
    assert_int_equal(found.st_mode & 07777, 0600);
    end(stage);
}

static void test_upload_refused_before_its_end(void **state)
{
    struct stage *stage = *state;
    begin(stage, "upload.outside");
    assert_int_equal(body_push(&stage->body, "abc", 3), 3);
    run_to_end(stage);
    assert_int_equal(stage->err.code, ERR_PATH_OUTSIDE_BASE);
    assert_true(stage->body.dropped);
    assert_int_equal(tree_count(stage->tree, "out"), 1);
    end(stage);
}

static void test_upload_cut_off(void **state)
{
    struct stage *stage = *state;
    static char piece[PIECE_BYTES];
    int before = tree_count(stage->tree, "ws");
    begin(stage, "upload");
    body_push(&stage->body, "abc", 3);
    body_end(&stage->body, false);
    run_to_end(stage);
    assert_int_equal(stage->err.code, ERR_INVALID_REQUEST);
    end(stage);
    for (int moment = 0; moment < 6; moment++) {
        begin(stage, "upload");
        for (int i = 0; i < moment * 2; i++)
            body_push(&stage->body, piece, PIECE_BYTES);
        if (moment == 3)
            loop_turn(stage->host.loop, false);
        task_cancel(stage->task);
        end(stage);
        assert_int_equal(tree_count(stage->tree, "ws"), before);
    }
}

static void test_body_is_read_once(void **state)
{
    struct stage *stage = *state;
    begin(stage, "upload.twice");
    body_end(&stage->body, true);
    run_to_end(stage);
    assert_int_equal(stage->err.code, ERR_INTERNAL);
    assert_false(tree_has(stage->tree, "ws/newer"));
    end(stage);
}

static void test_write_from_a_file(void **state)
{
    struct stage *stage = *state;
    begin(stage, "write.file");
    run_to_end(stage);
    assert_non_null(strstr(text_body(stage), "/ws/new/f\",\"size\":5,\"created\":true,"));
    assert_string_equal(tree_text(stage->tree, "ws/new/f"), "inner");
    end(stage);
    begin(stage, "write.outside");
    run_to_end(stage);
    assert_int_equal(stage->err.code, ERR_PATH_OUTSIDE_BASE);
    assert_string_equal(stage->err.field, "path");
    end(stage);
    static const char *const misuses[] = {"write.twice", "write.both", "write.word"};
    for (size_t i = 0; i < sizeof(misuses) / sizeof(misuses[0]); i++) {
        begin(stage, misuses[i]);
        run_to_end(stage);
        assert_int_equal(stage->err.code, ERR_INTERNAL);
        end(stage);
    }
    assert_string_equal(tree_text(stage->tree, "ws/once"), "inner");
    assert_false(tree_has(stage->tree, "ws/twice") || tree_has(stage->tree, "ws/both") ||
                 tree_has(stage->tree, "ws/word"));
    begin(stage, "write.file");
    loop_turn(stage->host.loop, true); /* it is open, and being written */
    task_cancel(stage->task);
    end(stage);
}

/* Takes what the stream holds until it ends or `enough` bytes came; how many. */
static size_t take_stream(struct stage *stage, size_t enough)
{
    size_t total = 0, len = 0;
    while (total < enough && (len > 0 || !stage->over)) {
        if (!stage->over) /* taking may have filled the sink again: no event would come then */
            loop_turn(stage->host.loop, len == 0);
        struct sink *sink = stage->response.sink;
        const char *bytes = sink ? sink_peek(sink, &len) : NULL;
        if (!bytes)
            continue;
        assert_true(len <= SINK_HIGH_WATER_BYTES);
        if (total == 0)
            assert_memory_equal(bytes, "archive tar.gz ", 15);
        total += len;
        sink_take(sink, len);
    }
    return total;
}

static void test_archive(void **state)
{
    struct stage *stage = *state;
    begin(stage, "archive");
    assert_int_equal(take_stream(stage, SIZE_MAX), HELPER_BYTES + strlen("archive tar.gz d\n"));
    assert_string_equal(response_header_find(&stage->response, "X-Name"), "d.tar.gz");
    assert_int_equal(stage->response.sink->state, SINK_DONE);
    end(stage);
    begin(stage, "archive.fails");
    assert_int_equal(take_stream(stage, SIZE_MAX), HELPER_BYTES + strlen("archive tar.gz bad\n"));
    assert_int_equal(stage->response.sink->state, SINK_ABORTED); /* cut: nobody may take it for whole */
    end(stage);
    begin(stage, "archive.file");
    run_to_end(stage);
    assert_int_equal(stage->err.code, ERR_NOT_A_DIRECTORY);
    end(stage);
}

/* The client leaves in the middle: by its end of the sink, or because the pipeline cancels. */
static void test_archive_client_leaves(void **state)
{
    struct stage *stage = *state;
    begin(stage, "archive");
    assert_true(take_stream(stage, 100000) >= 100000);
    sink_close(stage->response.sink);
    run_to_end(stage);
    end(stage);
    begin(stage, "archive");
    assert_true(take_stream(stage, 100000) >= 100000);
    task_cancel(stage->task);
    end(stage);
    while (loop_handles_open(stage->host.loop) > stage->handles_before) /* the helper, its pipes, our timer */
        loop_turn(stage->host.loop, true);
    assert_int_equal(process_table_living(stage->host.processes), 0);
}

static void write_executable(const struct tree *tree, const char *name, const char *content)
{
    tree_file(tree, name, content);
    assert_int_equal(chmod(tree_path(tree, name), 0755), 0);
}

static int set_up(void **state)
{
    extern char **environ;
    static const struct process_limits limits = {512, 256, 256, 64, 64 * 1024 * 1024};
    static const char *const packs[] = {NULL};
    struct stage *stage = calloc(1, sizeof(*stage));
    struct err err;
    void *inner = &tree_by_openat2;
    if (tree_set_up(&inner) != 0)
        return -1;
    struct tree *tree = stage->tree = inner;
    tree_dir(tree, "ws/d");
    tree_dir(tree, "ws/bad");
    tree_file(tree, "ws/d/f", "inner");
    tree_dir(tree, "lua");
    tree_dir(tree, "lua/groups");
    tree_dir(tree, "lua/routes");
    tree_dir(tree, "lua/packs");
    tree_dir(tree, "lua/abx");
    tree_file(tree, "lua/groups/test.lua", group_lua);
    tree_file(tree, "lua/routes/test.lua", routes_lua);
    write_executable(tree, "helper", helper_sh);
    snprintf(stage->helper, sizeof(stage->helper), "%s/helper", tree->top);
    snprintf(stage->lua_dir, sizeof(stage->lua_dir), "%s/lua", tree->top);
    stage->host.loop = loop_new();
    stage->host.confine = tree->confine;
    stage->host.helper_path = stage->helper;
    stage->host.processes = process_table_new(stage->host.loop, &limits, environ, &err);
    assert_non_null(stage->host.processes);
    struct script_options options = {
        .loop = stage->host.loop,
        .lua_dir = stage->lua_dir,
        .packs = packs,
        .bindings = bind_all,
        .host = &stage->host,
        .limits = {.cpu_ms = 10000, .task_memory_bytes = 64 * 1024 * 1024, .load_cpu_ms = 10000},
    };
    struct faults faults;
    faults_init(&faults);
    stage->generation = generation_load(&options, &faults);
    if (!stage->generation)
        print_error("%.*s\n", (int)faults.text.len, faults.text.data);
    faults_deinit(&faults);
    stage->handles_before = loop_handles_open(stage->host.loop);
    *state = stage;
    return stage->generation ? 0 : -1;
}

static int tear_down(void **state)
{
    struct stage *stage = *state;
    void *inner = stage->tree;
    generation_unref(stage->generation);
    process_table_free(stage->host.processes);
    size_t handles = loop_handles_open(stage->host.loop);
    loop_free(stage->host.loop);
    free(stage);
    int leaked = tree_tear_down(&inner);
    return handles || leaked ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_open_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_small_upload, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_upload_waits_for_the_disk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_upload_refused_before_its_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_upload_cut_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_body_is_read_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_write_from_a_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_archive, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_archive_client_leaves, set_up, tear_down),
    };
    (void)tree_by_walk;
    log_configure(LOG_LEVEL_OFF, true);
    loop_free(loop_new()); /* libuv keeps a pipe for signals from its first loop on */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
