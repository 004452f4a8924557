/* The exit statuses of the project's programs. */
#pragma once

enum exit_status {
    EXIT_OK = 0,
    EXIT_WRONG = 1,   /* a result is wrong, or a submission gets fewer points than there are */
    EXIT_USAGE = 2,   /* bad usage, or a size that is not supported; nothing has run */
    EXIT_FAILED = 3,  /* the device failed or found a fault, or something that is needed is missing or broken */
    EXIT_REFUSED = 4, /* of the grader's child alone: the submission refuses the problem */
};
