/* The command line: abxd [serve] | check | routes [--json] | version, each with the flags of the configuration. */
#include "server/config.h"
#include "server/server.h"
#include "server/tables.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void print_help(void)
{
    printf("abxd " ABX_VERSION ": the service layer inside a sandbox\n"
           "usage: abxd [serve] [flags]     serve until SIGTERM; SIGHUP reloads the tables\n"
           "       abxd check [flags]       load everything, print every fault; exit 0 or 2\n"
           "       abxd routes [--json]     print the route table\n"
           "       abxd version\n"
           "flags, also as ABX_SERVER_* variables and in the configuration file; commas or blanks part a list:\n");
    config_print_help();
}

/* The directory that this executable lies in; "." where /proc does not tell. */
static const char *install_dir(char path[PATH_MAX])
{
    ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (len <= 0)
        return ".";
    path[len] = '\0';
    return dirname(path);
}

/* Takes the flag out of argv where it stands. */
static bool take_flag(int *argc, char **argv, const char *flag)
{
    for (int i = 0; i < *argc; i++) {
        if (strcmp(argv[i], flag) != 0)
            continue;
        memmove(argv + i, argv + i + 1, (size_t)(*argc - i) * sizeof(*argv));
        (*argc)--;
        return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    const char *verb = "serve";
    argc--, argv++;
    if (argc > 0 && argv[0][0] != '-') {
        verb = argv[0];
        argc--, argv++;
    }
    if (strcmp(verb, "help") == 0 || take_flag(&argc, argv, "--help") || take_flag(&argc, argv, "-h")) {
        print_help();
        return EXIT_OK;
    }
    if (strcmp(verb, "version") == 0 || take_flag(&argc, argv, "--version")) {
        printf("abxd " ABX_VERSION "\n");
        return EXIT_OK;
    }
    bool serve = strcmp(verb, "serve") == 0, check = strcmp(verb, "check") == 0, routes = strcmp(verb, "routes") == 0;
    if (!serve && !check && !routes) {
        fprintf(stderr, "abxd: unknown command %s; abxd --help lists them\n", verb);
        return EXIT_USAGE;
    }
    bool json = routes && take_flag(&argc, argv, "--json");

    char path[PATH_MAX];
    const char *dir = install_dir(path);
    struct config config;
    struct faults faults;
    enum exit_status status;
    faults_init(&faults);
    if (config_read(&config, argc, argv, dir, &faults) != 0) {
        fwrite(faults.text.data, 1, faults.text.len, stderr);
        status = EXIT_USAGE;
    } else if (check) {
        status = tables_check(&config);
    } else if (routes) {
        status = tables_print_routes(&config, json);
    } else {
        status = server_run(&config, dir);
    }
    faults_deinit(&faults);
    config_deinit(&config);
    return status;
}
