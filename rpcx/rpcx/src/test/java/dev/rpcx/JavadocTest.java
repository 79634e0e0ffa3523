package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.source.util.DocTrees;
import com.sun.source.util.JavacTask;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import javax.lang.model.element.Element;
import javax.lang.model.element.ElementKind;
import javax.lang.model.element.Modifier;
import javax.lang.model.element.PackageElement;
import javax.lang.model.element.TypeElement;
import javax.lang.model.util.ElementFilter;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;

/**
 * Tests that everything that a user can see has Javadoc: every public type, and every public or protected member of
 * such a type. The exceptions are members whose Javadoc would say nothing new: overrides, members that the compiler
 * makes, enum constants, and accessors and constructors of records.
 */
class JavadocTest {
    private static final Path SOURCES = Path.of("src/main/java");

    @Test
    void everythingPublicHasJavadoc() throws IOException {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        List<String> bare = new ArrayList<>();
        int seen = 0;
        try (StandardJavaFileManager files = compiler.getStandardFileManager(null, null, null);
                Stream<Path> walk = Files.walk(SOURCES)) {
            List<Path> sources =
                    walk.filter(file -> file.toString().endsWith(".java")).toList();
            JavacTask task = (JavacTask) compiler.getTask(
                    null,
                    files,
                    null,
                    List.of("-proc:none", "-classpath", System.getProperty("java.class.path")),
                    null,
                    files.getJavaFileObjectsFromPaths(sources));
            task.parse();
            Iterable<? extends Element> elements = task.analyze();
            DocTrees docs = DocTrees.instance(task);
            for (Element element : elements) {
                if (element instanceof PackageElement pack) {
                    require(docs, pack, bare);
                } else if (element instanceof TypeElement type && !isInternal(type)) {
                    seen += type(docs, task, type, bare);
                }
            }
        }
        assertThat(bare).as("public, and without Javadoc").isEmpty();
        assertThat(seen).isGreaterThan(100);
    }

    /** Classes of the rooms are public among themselves; no user sees them. */
    private static boolean isInternal(TypeElement type) {
        return type.getQualifiedName().toString().startsWith("dev.rpcx.internal.");
    }

    /** @return how many members were looked at */
    private static int type(DocTrees docs, JavacTask task, TypeElement type, List<String> bare) {
        if (!isVisible(type)) {
            return 0;
        }
        require(docs, type, bare);
        int seen = 0;
        for (Element member : type.getEnclosedElements()) {
            if (member instanceof TypeElement nested) {
                seen += type(docs, task, nested, bare);
            } else if (isVisible(member) && !isExempt(docs, task, member)) {
                require(docs, member, bare);
                seen++;
            }
        }
        return seen;
    }

    private static void require(DocTrees docs, Element element, List<String> bare) {
        if (docs.getPath(element) != null && docs.getDocComment(docs.getPath(element)) == null) {
            Element in = element.getEnclosingElement();
            bare.add(element instanceof TypeElement || in == null ? element.toString() : in + "." + element);
        }
    }

    private static boolean isVisible(Element element) {
        for (Element e = element; e != null && !(e instanceof PackageElement); e = e.getEnclosingElement()) {
            Set<Modifier> modifiers = e.getModifiers();
            if (!modifiers.contains(Modifier.PUBLIC) && !modifiers.contains(Modifier.PROTECTED)) {
                return false;
            }
        }
        return true;
    }

    private static boolean isExempt(DocTrees docs, JavacTask task, Element member) {
        boolean made = task.getElements().getOrigin(member) != javax.lang.model.util.Elements.Origin.EXPLICIT;
        boolean override = member.getAnnotation(Override.class) != null;
        Element in = member.getEnclosingElement();
        boolean ofRecord = in.getKind() == ElementKind.RECORD
                && (member.getKind() == ElementKind.CONSTRUCTOR
                        || ElementFilter.recordComponentsIn(in.getEnclosedElements()).stream()
                                .anyMatch(c -> member.equals(c.getAccessor())));
        boolean constant = member.getKind() == ElementKind.ENUM_CONSTANT;
        return made || override || ofRecord || constant || docs.getPath(member) == null;
    }
}
