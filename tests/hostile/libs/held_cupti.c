/*
 * A CUPTI that hands back one buffer when it is told to, and in which whoever looks into that
 * buffer stays until he is told to go on.  The program decides what happens meanwhile.
 */
#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>

static void (*request)(uint8_t **buffer, size_t *bytes, size_t *records);
static void (*complete)(
	void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid);
static sem_t inside, may_go;
static int held;

__attribute__((constructor)) static void prepare(void)
{
	sem_init(&inside, 0, 0);
	sem_init(&may_go, 0, 0);
}

/* Gives a buffer out and back. */
void held_return(void)
{
	uint8_t *buffer = NULL;
	size_t bytes = 0, records = 0;
	held = 1;
	request(&buffer, &bytes, &records);
	complete(NULL, 0, buffer, bytes, 64);
	sem_post(&inside);
}

/* Until somebody is inside, or held_return() is through. */
void held_wait(void)
{
	sem_wait(&inside);
}

void held_go(void)
{
	sem_post(&may_go);
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record)
{
	if (held) {
		held = 0;
		sem_post(&inside);
		sem_wait(&may_go);
	}
	return 12; /* CUPTI_ERROR_MAX_LIMIT_REACHED */
}

int cuptiActivityRegisterCallbacks(void *new_request, void *new_complete)
{
	request = (__typeof__(request))new_request;
	complete = (__typeof__(complete))new_complete;
	return 0;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
	*dropped = 0;
	return 0;
}

int cuptiActivityRegisterTimestampCallback(void *now)
{
	return 0;
}

int cuptiActivityEnable(int kind)
{
	return 0;
}

int cuptiActivityDisable(int kind)
{
	return 0;
}

int cuptiActivityFlushAll(uint32_t forced)
{
	return 0;
}

int cuptiActivityFlushPeriod(uint32_t ms)
{
	return 0;
}
