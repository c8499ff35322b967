/* A plugin for GCC: `#pragma conformance_instantiate` instantiates the templates that have been used so far, which GCC would
   otherwise do at the end of each file. Declares what it calls, so that it needs no headers of GCC's. */

int plugin_is_GPL_compatible;

#define PLUGIN_PRAGMAS 15 /* of GCC's plugin.def; where it is another event, the pragma is unknown and ignored */

extern void register_callback(const char *, int, void (*)(void *, void *), void *);
extern void register_pragma(const char *, const char *, void (*)(void *))
    __asm__("_Z17c_register_pragmaPKcS0_PFvP10cpp_readerE");
extern void instantiate_pending_templates(int) __asm__("_Z29instantiate_pending_templatesi");

static void instantiate(void *reader) {
  (void)reader;
  instantiate_pending_templates(0);
}

static void add_pragma(void *event, void *data) {
  (void)event;
  (void)data;
  register_pragma(0, "conformance_instantiate", instantiate);
}

int plugin_init(void *plugin, void *version) {
  (void)plugin;
  (void)version;
  register_callback("conformance", PLUGIN_PRAGMAS, add_pragma, 0);
  return 0;
}
