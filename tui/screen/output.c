#include "tui/screen/output.h"

#include <stdlib.h>
#include <string.h>

#include "oomcast/export.h"
#include "tui/report/report.h"
#include "tui/screen/host.h"

/* What a function writes of the screen to a FILE, as a buffer's text. */
static void capture(struct oc_app *app, void (*write)(const struct oc_canvas *, FILE *), struct oc_buffer *out)
{
    const struct oc_canvas *canvas = app->host ? app->host->canvas(app->host->user) : NULL;
    char *text = NULL;
    size_t size = 0;
    if (!canvas) return;
    FILE *file = open_memstream(&text, &size);
    if (!file) {
        out->failed = true;
        return;
    }
    write(canvas, file);
    out->failed |= fclose(file) != 0;
    if (text) oc_put_bytes(out, text, size);
    free(text);
}

static void write_rows(const struct oc_canvas *canvas, FILE *out)
{
    for (int y = 0; y < canvas->height; y++) oc_canvas_write_row(canvas, y, out);
}

static void write_text(struct oc_app *app, struct oc_buffer *out)
{
    capture(app, write_rows, out);
}

static void write_screen(struct oc_app *app, struct oc_buffer *out)
{
    capture(app, oc_canvas_write, out);
}

static void write_svg(struct oc_app *app, struct oc_buffer *out)
{
    capture(app, oc_canvas_picture, out);
}

static struct oc_report report_of(const struct oc_app *app)
{
    return (struct oc_report){.input = app->input, .answer = app->answer, .reason = &app->reason};
}

static void write_json(struct oc_app *app, struct oc_buffer *out)
{
    const struct oc_report report = report_of(app);
    oc_report_json(&report, out);
}

static void write_markdown(struct oc_app *app, struct oc_buffer *out)
{
    const struct oc_report report = report_of(app);
    oc_report_markdown(&report, out);
}

static const struct {
    const char *name, *title;
    void (*write)(struct oc_app *app, struct oc_buffer *out);
} outputs[] = {{"text", "The screen as text", write_text},
               {"screen", "The cells of the screen", write_screen},
               {"markdown", "The report as Markdown", write_markdown},
               {"svg", "The screen as a picture", write_svg},
               {"json", "The report as JSON", write_json}};

enum { OUTPUTS = sizeof outputs / sizeof outputs[0] };

const char *oc_output_name(int i)
{
    return i < OUTPUTS ? outputs[i].name : NULL;
}

bool oc_output_write(struct oc_app *app, const char *name, char *title, size_t size, struct oc_buffer *out)
{
    const struct oc_exporter *exporter = oc_exporter_find(name);
    if (exporter) {
        char *text = exporter->write(oc_app_case(app), &app->answer->plan);
        snprintf(title, size, "%s", exporter->title);
        oc_put(out, text ? text : "");
        free(text);
    }
    for (int i = 0; i < OUTPUTS; i++) {
        if (strcmp(outputs[i].name, name) != 0) continue;
        snprintf(title, size, "%s", outputs[i].title);
        outputs[i].write(app, out);
    }
    if (!out->failed && out->size > 0) return true;
    oc_app_say(app, true, "%.40s cannot be exported: megatron, deepspeed, set, session, text, markdown, svg or json",
               name);
    return false;
}
