/* The devices: how many are installed, which of them this process sees, and what they say of themselves. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static _Atomic int installed = 1;
/* Written by cuInit before the driver is up; the ordinal a process uses -> the installed device. Atomic for threads
 * that are still asking while the driver is shut down and brought up again. */
static _Atomic int visible[SIM_MAX_DEVICES];
static _Atomic int visible_count = 0;

void sim_set_installed(int count) {
    atomic_store(&installed, count);
}
bool sim_is_device(CUdevice device) {
    return device >= 0 && device < visible_count;
}

/* The installed device's number comes first, so that a few digits name one device among several. */
static CUuuid uuid_of(int device) {
    static const unsigned char tail[15] = {0x51, 0xd0, 0xde, 0x51, 0x4d, 0x4d, 0x75, 0x8a,
                                           0x1a, 0x7e, 0xdd, 0x21, 0x7e, 0x12, 0x5a};
    CUuuid uuid;
    uuid.bytes[0] = (char)device;
    memcpy(uuid.bytes + 1, tail, sizeof tail);
    return uuid;
}

static void uuid_text(int device, char text[41]) {
    CUuuid uuid = uuid_of(device);
    char* to = text + sprintf(text, "GPU-");
    for (int byte = 0; byte < 16; byte++) {
        const char* dash = byte == 4 || byte == 6 || byte == 8 || byte == 10 ? "-" : "";
        to += sprintf(to, "%s%02x", dash, (unsigned char)uuid.bytes[byte]);
    }
}

/* "1gpu" is 1, as with strtoul; what begins with no digit, or a sign, names no device. */
static int device_by_number(const char* text, int count) {
    if (text[0] < '0' || text[0] > '9')
        return -1;
    unsigned long number = strtoul(text, NULL, 10);
    return number < (unsigned long)count ? (int)number : -1;
}

/* Enough digits of a UUID to be the only one. */
static int device_by_uuid(const char* text, size_t length, int count) {
    int found = -1;
    for (int device = 0; device < count; device++) {
        char uuid[41];
        uuid_text(device, uuid);
        if (length >= sizeof uuid || strncmp(uuid, text, length) != 0)
            continue;
        if (found >= 0)
            return -1;
        found = device;
    }
    return found;
}

/* CUDA_VISIBLE_DEVICES: the list ends at the first element that names no device; one named twice empties it. */
static int read_list(const char* list, int count, int found[SIM_MAX_DEVICES]) {
    bool by_uuid = strncmp(list, "GPU-", 4) == 0;
    int length = 0;
    for (const char* element = list; element != NULL;) {
        size_t end = strcspn(element, ",");
        int device = by_uuid ? device_by_uuid(element, end, count) : device_by_number(element, count);
        if (device < 0)
            break;
        for (int earlier = 0; earlier < length; earlier++)
            if (found[earlier] == device)
                return 0;
        found[length++] = device;
        element = element[end] == ',' ? element + end + 1 : NULL;
    }
    return length;
}

int sim_find_devices(void) {
    int count = atomic_load(&installed);
    int found[SIM_MAX_DEVICES];
    const char* list = getenv("CUDA_VISIBLE_DEVICES");
    if (list != NULL)
        count = read_list(list, count, found);
    for (int ordinal = 0; ordinal < count; ordinal++)
        atomic_store(&visible[ordinal], list != NULL ? found[ordinal] : ordinal);
    atomic_store(&visible_count, count);
    return count;
}

CUresult cuDeviceGetCount(int* count) {
    SIM_ENTER(cuDeviceGetCount);
    if (count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *count = visible_count;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    SIM_ENTER(cuDeviceGet);
    if (device == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is_device(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
    SIM_ENTER(cuDeviceGetName);
    if (name == NULL || length <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)length, "Simulated CUDA device %d", visible[device]);
    return CUDA_SUCCESS;
}

static CUresult get_uuid(CUuuid* uuid, CUdevice device) {
    if (uuid == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *uuid = uuid_of(visible[device]);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
    SIM_ENTER(cuDeviceGetUuid);
    return get_uuid(uuid, device);
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
    SIM_ENTER(cuDeviceGetUuid_v2);
    return get_uuid(uuid, device);
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
    SIM_ENTER(cuDeviceTotalMem_v2);
    if (bytes == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *bytes = sim_device_memory();
    return CUDA_SUCCESS;
}

/* Attributes that nobody is likely to act on are 0: the device has none of that. */
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
    enum { LAST_ATTRIBUTE = 135 }; /* of CUDA 12.5 */
    SIM_ENTER(cuDeviceGetAttribute);
    if (value == NULL || (int)attribute < 1 || (int)attribute > LAST_ATTRIBUTE)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    switch ((int)attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = 1024;
        break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
        *value = 32;
        break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = 1;
        break;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        *value = visible[device] + 1;
        break;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
        *value = 1;
        break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = 8;
        break;
    default:
        *value = 0;
    }
    return CUDA_SUCCESS;
}
