/* The process of a pod's sandbox: it waits, and buries the orphans of the pod's other containers. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void bury(int signal) {
    (void)signal;
    while (waitpid(-1, 0, WNOHANG) > 0) {
    }
}

static void end(int signal) {
    (void)signal;
    _exit(0);
}

int main(void) {
    signal(SIGCHLD, bury);
    signal(SIGTERM, end);
    signal(SIGINT, end);
    for (;;)
        pause();
}
