/* A disk whose syncs are slow, for the program into which this is preloaded.

   The folder SLOW_DISK has the file `delay`, with the milliseconds that each sync takes from now on. The file
   `delayed` gets a byte for each sync that took longer for it, so that it shows that there were some. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int open_beside(const char *name, int flags) {
    const char *folder = getenv("SLOW_DISK");
    char path[PATH_MAX];
    if (folder == NULL || snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return -1;
    return open(path, flags | O_CLOEXEC, 0666);
}

static long delay(void) {
    char text[16] = "";
    int file = open_beside("delay", O_RDONLY);
    if (file < 0)
        return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    return length > 0 ? strtol(text, NULL, 10) : 0;
}

static void take_long(void) {
    long milliseconds = delay();
    if (milliseconds <= 0)
        return;
    struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
    int file = open_beside("delayed", O_WRONLY | O_CREAT | O_APPEND);
    if (file < 0)
        return;
    /* A byte that is missing makes the test fail, and nothing else. */
    if (write(file, ".", 1) != 1)
        perror("slow_disk: delayed");
    close(file);
}

static int slowly(long number, int file) {
    take_long();
    return (int)syscall(number, file);
}

int fsync(int file) { return slowly(SYS_fsync, file); }

int fdatasync(int file) { return slowly(SYS_fdatasync, file); }
