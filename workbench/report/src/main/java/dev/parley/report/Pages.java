package dev.parley.report;

import gg.jte.ContentType;
import gg.jte.TemplateEngine;
import gg.jte.output.StringOutput;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/**
 * Writes pages from the templates in {@code src/main/jte}, which the build compiles into this package. A template has
 * one parameter, which holds all that it shows; what it shows is escaped by the place where it stands. Why:
 * docs/decisions/0027-pages-are-templates.md.
 */
final class Pages {
    private static final TemplateEngine TEMPLATES =
            TemplateEngine.createPrecompiled(null, ContentType.Html, null, Pages.class.getPackageName());

    private Pages() {}

    /** @param template name of its file, without the ending */
    static String text(String template, Object shown) {
        StringOutput text = new StringOutput();
        TEMPLATES.render(template + ".jte", shown, text);
        return text.toString();
    }

    /** A file of this package, or of a library. */
    static String resource(String name) {
        try (InputStream in = Pages.class.getResourceAsStream(name)) {
            if (in == null) {
                throw new IllegalStateException(
                        name + ": missing from the class path (expected: part of parley-report's jars)");
            }
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
