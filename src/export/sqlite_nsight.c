/*
 * Views with the tables, columns and numbers of Nsight Systems' SQLite schema, with NULL for
 * columns that no trace has. A serialized process is pid << 24, and a thread adds its tid, so `/
 * 0x1000000 % 0x1000000` gives the pid.
 */
#include "export/export_sqlite.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <string.h>

#define GLOBAL_PID(of) "(" of ".pid * 16777216)"
#define GLOBAL_TID(of) "(" of ".pid * 16777216 + (" of ".tid & 16777215))"

/* All activities of devices begin with these columns. */
#define ACTIVITY                                                                                         \
	"w.start AS start, w.end AS end, w.deviceId AS deviceId, w.contextId AS contextId, "             \
	"NULL AS greenContextId, w.streamId AS streamId, w.correlationId AS correlationId, " GLOBAL_PID( \
		"w") " AS globalPid, "

#define ENUM(name, ...)                                                                            \
	"CREATE TABLE ENUM_" name " (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);"     \
	"INSERT INTO ENUM_" name " VALUES " __VA_ARGS__ ";"

static const char enums[] = ENUM("NSYS_EVENT_CLASS",
	"(0,'TRACE_PROCESS_EVENT_CUDA_RUNTIME','CUDA runtime'),"
	"(1,'TRACE_PROCESS_EVENT_CUDA_DRIVER','CUDA driver')") ENUM("NSYS_EVENT_TYPE",
	"(34,'NvtxMark','NVTX mark'),"
	"(59,'NvtxPushPopRange','NVTX push/pop range'),"
	"(60,'NvtxStartEndRange','NVTX start/end range'),"
	"(75,'NvtxDomainCreate','NVTX domain create')") ENUM("CUDA_MEMCPY_OPER",
	"(0,'CUDA_MEMCPY_KIND_UNKNOWN','Unknown'),"
	"(1,'CUDA_MEMCPY_KIND_HTOD','Host-to-Device'),"
	"(2,'CUDA_MEMCPY_KIND_DTOH','Device-to-Host'),"
	"(3,'CUDA_MEMCPY_KIND_HTOA','Host-to-Array'),"
	"(4,'CUDA_MEMCPY_KIND_ATOH','Array-to-Host'),"
	"(5,'CUDA_MEMCPY_KIND_ATOA','Array-to-Array'),"
	"(6,'CUDA_MEMCPY_KIND_ATOD','Array-to-Device'),"
	"(7,'CUDA_MEMCPY_KIND_DTOA','Device-to-Array'),"
	"(8,'CUDA_MEMCPY_KIND_DTOD','Device-to-Device'),"
	"(9,'CUDA_MEMCPY_KIND_HTOH','Host-to-Host'),"
	"(10,'CUDA_MEMCPY_KIND_PTOP','Peer-to-Peer')") ENUM("CUDA_MEM_KIND",
	"(0,'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE','Pageable'),"
	"(1,'CUDA_MEMOPR_MEMORY_KIND_PINNED','Pinned'),"
	"(2,'CUDA_MEMOPR_MEMORY_KIND_DEVICE','Device'),"
	"(3,'CUDA_MEMOPR_MEMORY_KIND_ARRAY','Array'),"
	"(4,'CUDA_MEMOPR_MEMORY_KIND_MANAGED','Managed'),"
	"(5,'CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC','Device Static'),"
	"(6,'CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC','Managed Static'),"
	"(7,'CUDA_MEMOPR_MEMORY_KIND_UNKNOWN','Unknown')") ENUM("CUDA_DEV_MEM_EVENT_OPER",
	"(0,'CUDA_DEV_MEM_EVENT_OPR_ALLOCATION','Allocation'),"
	"(1,'CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION','Deallocation')") ENUM("CUPTI_SYNC_TYPE",
	"(0,'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN','Unknown'),"
	"(1,'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE','Event sync'),"
	"(2,'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT',"
	"'Stream wait sync'),"
	"(3,'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE','Stream sync'),"
	"(4,'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE',"
	"'Context sync')");

static const char activities[] =
	"CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT " ACTIVITY
	"w.nameId AS demangledName, n.shortName AS shortName, n.mangledName AS mangledName, "
	"NULL AS launchType, NULL AS cacheConfig, w.registersPerThread AS registersPerThread, "
	"w.gridX AS gridX, w.gridY AS gridY, w.gridZ AS gridZ, "
	"w.blockX AS blockX, w.blockY AS blockY, w.blockZ AS blockZ, "
	"w.staticSharedMemory AS staticSharedMemory, "
	"w.dynamicSharedMemory AS dynamicSharedMemory, NULL AS localMemoryPerThread, "
	"NULL AS localMemoryTotal, w.rowid AS gridId, NULL AS sharedMemoryExecuted, "
	"w.graphNodeId AS graphNodeId, NULL AS sharedMemoryLimitConfig "
	"FROM work w LEFT JOIN kernel_names n ON n.nameId = w.nameId WHERE w.kind = 'kernel';"
	"CREATE VIEW CUPTI_ACTIVITY_KIND_MEMCPY AS SELECT " ACTIVITY
	"w.bytes AS bytes, COALESCE(w.what, 0) AS copyKind, NULL AS deprecatedSrcId, "
	"w.fromKind - 1 AS srcKind, w.toKind - 1 AS dstKind, NULL AS srcDeviceId, "
	"NULL AS srcContextId, NULL AS dstDeviceId, NULL AS dstContextId, "
	"NULL AS migrationCause, w.graphNodeId AS graphNodeId, NULL AS virtualAddress "
	"FROM work w WHERE w.kind = 'memcpy';"
	"CREATE VIEW CUPTI_ACTIVITY_KIND_MEMSET AS SELECT " ACTIVITY
	"NULL AS value, w.bytes AS bytes, w.graphNodeId AS graphNodeId, "
	"w.fromKind - 1 AS memKind FROM work w WHERE w.kind = 'memset';"
	"CREATE VIEW CUPTI_ACTIVITY_KIND_SYNCHRONIZATION AS SELECT " ACTIVITY
	"COALESCE(w.what, 0) AS syncType, NULL AS eventId FROM work w WHERE w.kind = 'sync';"
	"CREATE VIEW CUPTI_ACTIVITY_KIND_GRAPH_TRACE AS SELECT " ACTIVITY
	"w.graphId AS graphId, NULL AS graphExecId FROM work w WHERE w.kind = 'graph';";

/* The outermost calls, as Nsight has them: a runtime's call and not the driver's below it. */
static const char calls[] =
	"CREATE INDEX calls_by_outer_correlation ON calls (outerCorrelationId) "
	"WHERE outerCorrelationId IS NOT NULL;"
	"CREATE VIEW CUPTI_ACTIVITY_KIND_RUNTIME AS SELECT c.start AS start, c.end AS end, "
	"c.apiId != %u AS eventClass, " GLOBAL_TID(
		"c") " AS globalTid, "
		     "c.outerCorrelationId AS correlationId, c.nameId AS nameId, "
		     "c.returnValue AS returnValue, (SELECT MIN(stackId) FROM call_stacks "
		     "WHERE outermostId = c.id) AS callchainId "
		     "FROM calls c WHERE c.outerId IS NULL AND c.apiId IN (%u, %u);";

static const char others[] =
	"CREATE VIEW CUDA_CALLCHAINS AS SELECT id, functionId AS symbol, "
	"moduleId AS module, functionId IS NULL AS unresolved, NULL AS originalIP, "
	"depth AS stackDepth FROM stacks;"
	"CREATE VIEW CUDA_GPU_MEMORY_USAGE_EVENTS AS SELECT m.start AS start, " GLOBAL_PID(
		"m") " AS globalPid, NULL AS deviceId, NULL AS contextId, "
		     "m.address AS address, NULL AS pc, m.bytes AS bytes, "
		     "CASE m.kind WHEN 'host' THEN 1 WHEN 'managed' THEN 4 ELSE 2 END AS memKind, "
		     "m.operation != 'alloc' AS memoryOperationType, NULL AS name, "
		     "c.outerCorrelationId AS correlationId, NULL AS streamId "
		     "FROM memory m LEFT JOIN calls c ON c.id = COALESCE("
		     "(SELECT outerId FROM calls WHERE id = m.callId), m.callId);"

		     "CREATE TABLE domains (id INTEGER PRIMARY KEY REFERENCES StringIds);"
		     "INSERT INTO domains SELECT DISTINCT scopeId FROM ranges WHERE scopeId IS NOT NULL "
		     "AND kind IN ('operator','annotation','nvtx','nvtx span');"
		     "CREATE VIEW NVTX_EVENTS AS SELECT r.start AS start, "
		     "CASE WHEN r.kind = 'nvtx span' AND r.start = r.end THEN NULL ELSE r.end END AS end, "
		     "CASE WHEN r.kind != 'nvtx span' THEN 59 WHEN r.start = r.end THEN 34 ELSE 60 END "
		     "AS eventType, CASE WHEN r.kind = 'nvtx span' AND r.start != r.end THEN r.id END "
		     "AS rangeId, NULL AS category, NULL AS color, s.value AS text, " GLOBAL_TID(
			     "r") " AS globalTid, NULL AS endGlobalTid, r.nameId AS textId, "
				  "COALESCE(r.scopeId, 0) AS domainId, NULL AS uint64Value, NULL AS int64Value, "
				  "NULL AS doubleValue, NULL AS uint32Value, NULL AS int32Value, NULL AS floatValue, "
				  "NULL AS jsonTextId, r.arguments AS jsonText, NULL AS binaryData "
				  "FROM ranges r LEFT JOIN StringIds s ON s.id = r.nameId "
				  "WHERE r.kind IN ('operator','annotation','nvtx','nvtx span') "
				  "UNION ALL SELECT 0, NULL, 75, NULL, NULL, NULL, s.value, NULL, NULL, d.id, d.id, "
				  "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL "
				  "FROM domains d JOIN StringIds s ON s.id = d.id;"

				  "CREATE VIEW ThreadNames AS SELECT t.nameId AS nameId, NULL AS priority, " GLOBAL_TID(
					  "t") " AS globalTid FROM threads t;"
					       "CREATE VIEW TARGET_INFO_GPU AS SELECT 0 AS vmId, d.deviceId AS id, d.name AS name, "
					       "NULL AS busLocation, 1 AS isDiscrete, NULL AS l2CacheSize, d.memory AS totalMemory, "
					       "NULL AS memoryBandwidth, NULL AS clockRate, d.multiprocessors AS smCount, "
					       "d.deviceId AS pwGpuId, d.uuid AS uuid, NULL AS luid, NULL AS chipName, "
					       "d.deviceId AS cuDevice, 32 AS threadsPerWarp, "
					       "d.computeMajor AS computeMajor, d.computeMinor AS computeMinor, "
					       "d.computeMajor AS smMajor, d.computeMinor AS smMinor "
					       "FROM devices d GROUP BY d.deviceId, d.name, d.uuid;"
					       "CREATE VIEW TARGET_INFO_CUDA_DEVICE AS SELECT deviceId AS gpuId, deviceId AS cudaId, "
					       "pid AS pid, uuid AS uuid, multiprocessors AS numMultiprocessors FROM devices;"
					       "CREATE VIEW TARGET_INFO_SESSION_START_TIME AS SELECT value AS utcEpochNs, "
					       "strftime('%%Y-%%m-%%dT%%H:%%M:%%S', value / 1000000000, 'unixepoch') AS utcTime, "
					       "strftime('%%Y-%%m-%%dT%%H:%%M:%%S', value / 1000000000, 'unixepoch', 'localtime') "
					       "AS localTime FROM meta WHERE name = 'start_realtime_ns';";

char *nsight_sql(uint32_t runtime, uint32_t driver)
{
	char *named = sqlite3_mprintf(calls, runtime, runtime, driver);
	char *rest = sqlite3_mprintf(others);
	char *sql =
		named && rest ? sqlite3_mprintf("%s%s%s%s", enums, activities, named, rest) : NULL;
	sqlite3_free(named);
	sqlite3_free(rest);
	return sql;
}

static const char unnamed[] = "(anonymous namespace)";

static bool opens(const char *s)
{
	return *s == '<' || *s == '{' ||
	       (*s == '(' && strncmp(s, unnamed, sizeof unnamed - 1) != 0);
}

/* Behind what a bracket encloses, or where the text ends. */
static const char *behind(const char *s)
{
	unsigned depth = 0;
	do {
		const bool arrow = *s == '>' && s[-1] == '-'; /* the first is no '>' */
		if (strchr("<({[", *s))
			depth++;
		else if (strchr(">)}]", *s) && !arrow)
			depth--;
		s++;
	} while (*s && depth);
	return s;
}

const char *nsight_short_name(const char *demangled, size_t *ret_bytes)
{
	const char *from = demangled, *to = NULL, *s = demangled;
	while (*s) {
		if (*s == ' ' || (*s == ':' && s[1] == ':')) {
			s += *s == ' ' ? 1 : 2;
			from = s, to = NULL;
		} else if (!strncmp(s, unnamed, sizeof unnamed - 1)) {
			s += sizeof unnamed - 1;
		} else if (opens(s)) {
			const bool arguments = *s == '(' && s > from;
			to = to ? to : s;
			s = behind(s);
			if (arguments)
				break;
		} else {
			s++;
		}
	}
	*ret_bytes = (size_t)((to ? to : s) - from);
	if (*ret_bytes)
		return from;
	*ret_bytes = strlen(demangled); /* no name that a compiler makes */
	return demangled;
}
