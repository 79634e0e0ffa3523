package dev.rpcx.codec;

import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.io.StringWriter;
import java.net.URI;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.tools.FileObject;
import javax.tools.ForwardingJavaFileManager;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileManager;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;

/** Compiles Java sources in memory. */
public final class CompiledSources {
    private CompiledSources() {}

    /**
     * Compiles the sources with the names of parameters.
     *
     * @param sources by the full name of the class that each begins with
     * @return a loader of all of them, whose parent has the tests
     */
    public static ClassLoader loader(Map<String, String> sources) {
        return loader(sources, CompiledSources.class.getClassLoader());
    }

    /**
     * Compiles the sources with the names of parameters.
     *
     * @param sources by the full name of the class that each begins with
     * @param parent has the tests, and perhaps resources beside the sources
     * @return a loader of all of them
     */
    public static ClassLoader loader(Map<String, String> sources, ClassLoader parent) {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        Map<String, ByteArrayOutputStream> classes = new HashMap<>();
        JavaFileManager files = new ForwardingJavaFileManager<>(compiler.getStandardFileManager(null, null, null)) {
            @Override
            public JavaFileObject getJavaFileForOutput(
                    Location location, String className, JavaFileObject.Kind kind, FileObject sibling) {
                return new SimpleJavaFileObject(URI.create("memory:///" + className.replace('.', '/')), kind) {
                    @Override
                    public OutputStream openOutputStream() {
                        return classes.computeIfAbsent(className, name -> new ByteArrayOutputStream());
                    }
                };
            }
        };
        List<JavaFileObject> units = new ArrayList<>();
        sources.forEach((name, text) -> units.add(
                new SimpleJavaFileObject(
                        URI.create("memory:///" + name.replace('.', '/') + ".java"), JavaFileObject.Kind.SOURCE) {
                    @Override
                    public CharSequence getCharContent(boolean ignoreEncodingErrors) {
                        return text;
                    }
                }));
        StringWriter errors = new StringWriter();
        List<String> options =
                List.of("-proc:none", "-parameters", "-classpath", System.getProperty("java.class.path"));
        if (!compiler.getTask(errors, files, null, options, null, units).call()) {
            throw new AssertionError(errors);
        }
        return new ClassLoader(parent) {
            @Override
            protected Class<?> findClass(String name) throws ClassNotFoundException {
                ByteArrayOutputStream bytes = classes.get(name);
                if (bytes == null) {
                    throw new ClassNotFoundException(name);
                }
                return defineClass(name, bytes.toByteArray(), 0, bytes.size());
            }
        };
    }
}
