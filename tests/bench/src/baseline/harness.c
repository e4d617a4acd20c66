// Stands in for a harness whose model takes no time. It says that it has begun, reads its task, prints the file `output`
// that lies beside it, and stays if there is a file `stay`.

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static char buffer[1 << 16];

static void copy(int from, int to) {
    ssize_t length;
    while ((length = read(from, buffer, sizeof buffer)) > 0)
        for (ssize_t done = 0, more; to >= 0 && done < length; done += more)
            if ((more = write(to, buffer + done, length - done)) < 0) return;
}

int main(int count, char **words) {
    for (int at = 1; at < count; at++)
        if (strcmp(words[at], "--version") == 0) return puts("2.1.329 (Claude Code)") < 0;
    char folder[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (length < 0) return 1;
    folder[length] = 0;
    *strrchr(folder, '/') = 0;
    if (chdir(folder)) return 1;
    struct sockaddr_un begun = {.sun_family = AF_UNIX, .sun_path = "begun"};
    int line = socket(AF_UNIX, SOCK_DGRAM, 0);
    sendto(line, "b", 1, 0, (struct sockaddr *)&begun, sizeof begun);
    copy(0, -1);
    copy(open("output", O_RDONLY), 1);
    if (access("stay", F_OK) == 0) pause();
    return 0;
}
