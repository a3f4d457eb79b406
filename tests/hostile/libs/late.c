/* Loaded by programs/late_destructor.c: its destructor calls the driver when most others, and
 * perhaps Weir's, have run. */
void late_set(void (*call)(void));

static void (*late)(void);

void late_set(void (*call)(void))
{
	late = call;
}

__attribute__((destructor)) static void leave(void)
{
	if (late)
		late();
}
