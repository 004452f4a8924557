/* Which element of a tile lies where, for tiles that copies of tensors have written: so that a product whose descriptor does not fit
 * the tile is told which element it would take instead. A tile is the box of one copy. */
#include "async_work.h"

#include "report.h"

/* The newest one is the last. One that lies under it is forgotten, as far as it goes. */
void tile_written(const struct tensor_copy *copy) {
    struct async_work *work = simt_worker->async.work;
    const struct tensor_map *map = &copy->map;
    uint32_t start = (uint32_t)copy->offset, kept = 0;
    for (unsigned i = 0; i < work->tile_count; i++) {
        const struct tile *old = &work->tiles[i];
        if (old->start + old->bytes <= start || start + copy->bytes <= old->start) work->tiles[kept++] = *old;
    }
    work->tile_count = kept;
    if (kept == MOST_TILES || map->rank == 0) return; /* then less is found; bytes in a row are no box */
    work->tiles[work->tile_count++] =
        (struct tile){start,        copy->bytes, (uint32_t)map->box[0] * map->element_bytes, map->rank > 1 ? map->box[1] : 1,
                      map->swizzle, copy->pc};
}

/* The tile in which this unit is, as its copy has written it, and as who reads it by this row may know. */
static const struct tile *tile_of(const uint32_t *row, uint32_t address) {
    const struct async_shadow *shadow = simt_worker->async.shadow;
    const struct async_work *work = simt_worker->async.work;
    for (unsigned i = 0; i < work->tile_count; i++) {
        const struct tile *tile = &work->tiles[i];
        if (address - tile->start >= tile->bytes) continue;
        const struct async_write *write = &shadow->writes[address / UNIT];
        bool is_newest = shadow->last[address / 4] && write->pc == relative_pc(tile->pc);
        bool is_known = !write->pending && row[phase_column(shadow, write->barrier)] >= write->phase;
        return is_newest && is_known ? tile : NULL;
    }
    return NULL;
}

bool tile_has_rows(const uint32_t *row, uint32_t address, unsigned swizzle) {
    const struct tile *tile = tile_of(row, address);
    return tile == NULL || (swizzle > 1 && tile->swizzle == swizzle && tile->row_bytes == swizzle * UNIT);
}

struct element { /* of 16 bits, or a pair of 8-bit ones, as a product counts */
    uint32_t row, column;
};

static struct element element_at(const struct tile *tile, uint32_t address) {
    uint32_t byte = swizzled_address(address, tile->swizzle) - tile->start;
    return (struct element){byte / tile->row_bytes, byte % tile->row_bytes / 2};
}

/* Offsets that leave the rows of a tile may be meant: that is a warning, where it may be. */
static void tell(const struct tile *tile, const struct unit *unit, struct element got, struct element wanted) {
    const char *const format =
        "%s: wgmma, as %c, %s in %s swizzle, %s the copy of a tensor at %s has written it in %s swizzle: as "
        "element (%u,%u) of %c it would take column %u of row %u of the tile instead of column %u of row %u";
    bool same = unit->swizzle == tile->swizzle;
#define WORDS                                                                                                                  \
    format, source_line(unit->pc), unit->matrix, same ? "by its offsets leaves the rows of the tile" : "reads the tile",       \
        swizzle_name(unit->swizzle), same ? "as" : "but", source_line(tile->pc), swizzle_name(tile->swizzle), unit->of_row,    \
        unit->of_column, unit->matrix, got.column * unit->pair, got.row, wanted.column * unit->pair, wanted.row
    if (simt_strict || !same)
        simt_fail(NULL, cudaErrorLaunchFailure, WORDS);
    else if (!simt_warned(unit->pc))
        simt_warn(unit->pc, WORDS);
}

/* The unit lies `along` elements to the right of the unit at `origin`, and `down` rows below it, if the tile is what the descriptor takes
 * it for. Tiles without a swizzle come in more orders than one, and other boxes may begin elsewhere: these are not judged. */
void tile_judge(const uint32_t *row, const struct unit *unit, uint32_t origin, uint32_t along, uint32_t down) {
    const struct tile *tile = tile_of(row, origin);
    if (tile == NULL || tile_of(row, unit->address) != tile) return;
    bool same = unit->swizzle == tile->swizzle;
    if (same && (unit->swizzle == 1 || tile->row_bytes != unit->swizzle * UNIT)) return;
    struct element first = element_at(tile, origin), got = element_at(tile, unit->address);
    struct element wanted = {first.row + down, first.column + along};
    bool several_planes = tile->bytes / tile->row_bytes > tile->rows;
    if (same && several_planes && wanted.column >= tile->row_bytes / 2) return;
    if (got.row != wanted.row || got.column != wanted.column) tell(tile, unit, got, wanted);
}
