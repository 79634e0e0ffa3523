package dev.rpcx.processor;

import dev.rpcx.OneWay;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXError;
import dev.rpcx.RPCXServer;
import dev.rpcx.internal.schema.ErrorType;
import dev.rpcx.internal.schema.ParameterNumbers;
import dev.rpcx.schema.Field;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.NoSuchFileException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import javax.annotation.processing.AbstractProcessor;
import javax.annotation.processing.Filer;
import javax.annotation.processing.RoundEnvironment;
import javax.annotation.processing.SupportedAnnotationTypes;
import javax.annotation.processing.SupportedOptions;
import javax.lang.model.SourceVersion;
import javax.lang.model.element.Element;
import javax.lang.model.element.ElementKind;
import javax.lang.model.element.ExecutableElement;
import javax.lang.model.element.Modifier;
import javax.lang.model.element.NestingKind;
import javax.lang.model.element.TypeElement;
import javax.lang.model.element.VariableElement;
import javax.lang.model.type.TypeKind;
import javax.lang.model.type.TypeMirror;
import javax.lang.model.util.ElementFilter;
import javax.tools.Diagnostic;
import javax.tools.FileObject;
import javax.tools.StandardLocation;
import org.jspecify.annotations.Nullable;

/**
 * This annotation processor checks classes with {@link RPCXServer}, interfaces with {@link RPCXClient} and exceptions
 * with {@link RPCXError} during compilation. The processor has three results:
 *
 * <ul>
 *   <li>Compile errors for services and interfaces that RPCX would refuse at start, for example because a type cannot
 *       be mapped to Protobuf. Faults that the compiler cannot see, for example a contradiction to a lock file, are
 *       reported only at start.
 *   <li>The index of services, from which RPCX finds the services at start if the program names none.
 *   <li>A configuration file for GraalVM native images. The option {@code rpcx.native} names the folder of this file
 *       below {@code META-INF/native-image/}. The default is {@code dev.rpcx/generated}.
 * </ul>
 *
 * <p>The compiler runs the processor for all sources, and not only for those with these annotations. So when a class
 * that has lost its annotation is compiled again, the processor runs and removes the class from the index.
 *
 * <p>With JDK 17 to 22, the compiler finds the processor on the class path if no processor path is given. With any JDK,
 * the compiler finds the processor on the processor path.
 */
@SupportedAnnotationTypes("*")
@SupportedOptions("rpcx.native")
public final class ServiceProcessor extends AbstractProcessor {
    /**
     * Path of the index of services, that is, the file that names the classes with {@link RPCXServer}. A class that
     * only inherits the annotation is not in the index. Each line is the binary name of one class. {@code ServiceIndex}
     * reads the file at start.
     */
    private static final String INDEX = "META-INF/rpcx/services";

    private static final int MAX_NAME_BYTES = 255;

    /** Classes of the services, by binary name. They are sorted, so that the same sources give the same index. */
    private final Map<String, Element> services = new TreeMap<>();

    private final Set<String> refused = new HashSet<>();

    // Names of the classes with @RPCXServer, of the interfaces with @RPCXClient and of the exceptions with @RPCXError
    // that the rounds have found so far.
    private final Set<String> servers = new LinkedHashSet<>();
    private final Set<String> clients = new LinkedHashSet<>();
    private final Set<String> errors = new LinkedHashSet<>();

    /**
     * Names of the outermost types in the sources that are being compiled. The compiler can show the line of an error
     * only inside these sources.
     */
    private final Set<String> compiled = new HashSet<>();

    /**
     * Service's class or client's interface that is being checked. If an error is in a type outside the compiled
     * sources, the compiler shows the error at this class or interface.
     */
    private @Nullable TypeElement current;

    private @Nullable TypeCheck types;

    private @Nullable NativeConfiguration image;

    private NativeConfiguration image() {
        if (image == null) {
            image = new NativeConfiguration(
                    processingEnv.getOptions().getOrDefault("rpcx.native", "dev.rpcx/generated"));
        }
        return image;
    }

    private TypeCheck types() {
        if (types == null) {
            types = new TypeCheck(processingEnv.getTypeUtils(), processingEnv.getElementUtils(), this::refuse);
        }
        return types;
    }

    @Override
    public SourceVersion getSupportedSourceVersion() {
        return SourceVersion.latestSupported();
    }

    /**
     * Finds types in each round, and checks them in the last one. Other processors may still add members to a type that
     * a round has found: Lombok adds getters and setters, and this processor may run before Lombok in each round.
     */
    @Override
    public boolean process(Set<? extends TypeElement> annotations, RoundEnvironment round) {
        addNames(round.getRootElements(), compiled);
        addNames(round.getElementsAnnotatedWith(RPCXServer.class), servers);
        addNames(round.getElementsAnnotatedWith(RPCXClient.class), clients);
        addNames(round.getElementsAnnotatedWith(RPCXError.class), errors);
        if (round.processingOver()) {
            check(servers, this::service);
            check(clients, this::client);
            check(errors, type -> types().error(type));
            // whether this round has raised errors is known only from the errors that this processor has reported
            if (!round.errorRaised() && refused.isEmpty()) {
                writeIndex();
                writeImage();
            }
        }
        return false;
    }

    private static void addNames(Set<? extends Element> elements, Set<String> names) {
        for (TypeElement type : ElementFilter.typesIn(elements)) {
            names.add(type.getQualifiedName().toString());
        }
    }

    private void check(Set<String> names, Consumer<TypeElement> check) {
        for (String name : names) {
            // an element of an earlier round need not have the members that were added since
            TypeElement type = processingEnv.getElementUtils().getTypeElement(name);
            if (type != null) {
                current = type;
                check.accept(type);
            }
        }
    }

    private void refuse(Element at, String text) {
        // several methods can have the same fault, for example in a shared type; the fault is reported only once
        if (refused.add(text)) {
            processingEnv.getMessager().printMessage(Diagnostic.Kind.ERROR, text, isCompiled(at) ? at : current);
        }
    }

    /**
     * Returns whether an element is in the sources that are being compiled. For any other element, the compiler cannot
     * show a line with the error.
     */
    private boolean isCompiled(Element at) {
        for (Element each = at; each != null; each = each.getEnclosingElement()) {
            if (each instanceof TypeElement type
                    && compiled.contains(type.getQualifiedName().toString())) {
                return true;
            }
        }
        return false;
    }

    private String binaryName(TypeElement type) {
        return processingEnv.getElementUtils().getBinaryName(type).toString();
    }

    private void service(TypeElement type) {
        String name = binaryName(type);
        if (isAbstract(type)) {
            if (isAnnotatedItself(type)) {
                refuse(
                        type,
                        name + ": @RPCXServer on what cannot be made, since it is "
                                + (type.getKind().isInterface() ? "an interface" : "abstract")
                                + " (expected: a class that is neither)");
            }
            return;
        }
        if (isAnnotatedItself(type)) {
            services.put(name, type);
        }
        image().members(name, type);
        checkName(type, name, type.getAnnotation(RPCXServer.class).value());
        Map<String, ExecutableElement> published = new HashMap<>();
        for (ExecutableElement method : publishedMethods(type)) {
            dev.rpcx.Method marked = method.getAnnotation(dev.rpcx.Method.class);
            String where = name + "." + method.getSimpleName();
            String methodName = published(method, marked);
            checkName(method, where, methodName);
            CallCheck.published(method, marked, where, text -> refuse(method, text));
            if (method.getModifiers().contains(Modifier.STATIC)) {
                refuse(method, where + ": @Method on a static method (expected: one of the object)");
            }
            refuseTwice(published, methodName, method, type);
            refuseOtherNumbers(type, method);
            method(name, method);
            thrown(method, where, false);
            addDeclaring(method, type);
        }
        if (published.isEmpty()) {
            refuse(type, name + " publishes nothing (expected: a method with @Method)");
        }
    }

    private static boolean isAbstract(TypeElement type) {
        return type.getKind().isInterface() || type.getModifiers().contains(Modifier.ABSTRACT);
    }

    /** Returns whether the annotation {@link RPCXServer} is on this type itself, and not only on a superclass. */
    private static boolean isAnnotatedItself(TypeElement type) {
        return type.getAnnotationMirrors().stream()
                .anyMatch(mirror -> mirror.getAnnotationType().asElement() instanceof TypeElement annotation
                        && annotation.getQualifiedName().contentEquals(RPCXServer.class.getName()));
    }

    private void client(TypeElement type) {
        String name = binaryName(type);
        if (type.getKind() != ElementKind.INTERFACE) {
            refuse(type, name + ": @RPCXClient on a class (expected: an interface)");
            return;
        }
        if (type.getModifiers().contains(Modifier.SEALED)) {
            refuse(
                    type,
                    name + ": @RPCXClient on a sealed interface, which only its own cases implement (expected: one that"
                            + " is not sealed)");
            return;
        }
        checkName(type, name, type.getAnnotation(RPCXClient.class).remoteServerName());
        image().proxy(name, type);
        image().members(name, type);
        Map<String, ExecutableElement> published = new HashMap<>();
        for (ExecutableElement method : methods(type)) {
            if (method.getModifiers().contains(Modifier.ABSTRACT)) {
                String methodName = published(method, method.getAnnotation(dev.rpcx.Method.class));
                checkName(method, name + "." + method.getSimpleName(), methodName);
                refuseTwice(published, methodName, method, type);
                method(name, method);
                CallCheck.call(type, method, name + "." + method.getSimpleName(), types(), this::refuse);
                thrown(method, name + "." + method.getSimpleName(), true);
                addDeclaring(method, type);
            }
        }
    }

    /**
     * Checks the exceptions that a method declares. Those with {@link RPCXError} must be such as can be sent, by names
     * that differ. A method of a client must not declare any other checked exception, except one of the JDK.
     */
    private void thrown(ExecutableElement method, String where, boolean isOfClient) {
        Map<String, TypeElement> named = new HashMap<>();
        for (TypeMirror each : method.getThrownTypes()) {
            if (each.getKind() != TypeKind.DECLARED
                    || !(processingEnv.getTypeUtils().asElement(each) instanceof TypeElement type)) {
                continue;
            }
            @Nullable RPCXError marked = type.getAnnotation(RPCXError.class);
            if (marked != null) {
                String name = marked.value().isEmpty() ? type.getSimpleName().toString() : marked.value();
                checkName(type, where + ": throws " + binaryName(type), name);
                types().error(type);
                TypeElement other = named.putIfAbsent(name, type);
                if (other != null && !other.equals(type)) {
                    refuse(method, ErrorType.namesakes(where, binaryName(other), binaryName(type), name));
                }
            } else if (isOfClient && types().isChecked(each) && !ErrorType.isOfJdk(binaryName(type))) {
                refuse(method, ErrorType.unmarked(where, binaryName(type)));
            }
        }
    }

    /**
     * Reports an error if another method of the same type has the published name {@code methodName}.
     * {@code PublishedMethod} does the same at start. In a client's interface, methods whose parameters have the same
     * types, names and numbers are allowed to share a published name: for example, one that blocks and one that returns
     * a future. If the methods have only one parameter, its name does not matter.
     *
     * @param published methods that were found so far, by published name; this method adds {@code method} if no other
     *     method has the name
     */
    private void refuseTwice(
            Map<String, ExecutableElement> published, String methodName, ExecutableElement method, TypeElement type) {
        ExecutableElement other = published.putIfAbsent(methodName, method);
        boolean isClient = type.getKind().isInterface();
        if (other != null && !(isClient && takeTheSame(other, method))) {
            refuse(
                    method,
                    binaryName(type) + ": " + methodName + " is published twice (expected: names that differ"
                            + (isClient ? ", or the same parameters by the same names)" : ")"));
        }
    }

    private boolean takeTheSame(ExecutableElement one, ExecutableElement other) {
        List<? extends VariableElement> ofOne = one.getParameters();
        List<? extends VariableElement> ofOther = other.getParameters();
        return ofOne.size() == ofOther.size()
                && IntStream.range(0, ofOne.size())
                        .allMatch(i -> processingEnv
                                .getTypeUtils()
                                .isSameType(
                                        ofOne.get(i).asType(), ofOther.get(i).asType()))
                && numbers(ofOne).equals(numbers(ofOther))
                && (ofOne.size() < 2 || names(ofOne).equals(names(ofOther)));
    }

    private static List<Integer> numbers(List<? extends VariableElement> parameters) {
        return ParameterNumbers.of(parameters, parameter -> parameter.getAnnotation(Field.class));
    }

    /**
     * Reports an error if an interface gives the parameters of this method other Protobuf numbers than the service's
     * class does. A client uses the {@link Field} annotations in the interface, and the class does not inherit these
     * annotations.
     */
    private void refuseOtherNumbers(TypeElement type, ExecutableElement method) {
        Set<TypeElement> interfaces = interfaces(type, new LinkedHashSet<>());
        for (TypeElement each : interfaces) {
            boolean isOfClient = interfaces.stream()
                    .filter(other -> other.getAnnotation(RPCXClient.class) != null)
                    .anyMatch(other -> other.equals(each)
                            || interfaces(other, new LinkedHashSet<>()).contains(each));
            for (ExecutableElement declared : ElementFilter.methodsIn(each.getEnclosedElements())) {
                boolean isNumbered = isOfClient
                        || declared.getParameters().stream()
                                .anyMatch(parameter -> parameter.getAnnotation(Field.class) != null);
                if (isNumbered
                        && processingEnv.getElementUtils().overrides(method, declared, type)
                        && !numbers(declared.getParameters()).equals(numbers(method.getParameters()))) {
                    refuse(
                            method,
                            ParameterNumbers.differ(
                                    binaryName(type) + "." + method.getSimpleName(),
                                    numbers(method.getParameters()),
                                    binaryName(each),
                                    numbers(declared.getParameters())));
                }
            }
        }
    }

    private Set<TypeElement> interfaces(TypeElement type, Set<TypeElement> found) {
        for (TypeMirror each : processingEnv.getTypeUtils().directSupertypes(type.asType())) {
            if (processingEnv.getTypeUtils().asElement(each) instanceof TypeElement element) {
                if (!element.getKind().isInterface() || found.add(element)) {
                    interfaces(element, found);
                }
            }
        }
        return found;
    }

    private static List<String> names(List<? extends VariableElement> parameters) {
        return parameters.stream()
                .map(parameter -> parameter.getSimpleName().toString())
                .toList();
    }

    /**
     * Adds a type to the configuration for native images: the type that declares {@code method}. Reflection looks up
     * the method in this type.
     */
    private void addDeclaring(ExecutableElement method, TypeElement origin) {
        if (method.getEnclosingElement() instanceof TypeElement declaring) {
            image().members(binaryName(declaring), origin);
        }
    }

    /**
     * Returns the methods that a class publishes: the methods with {@link dev.rpcx.Method} of the class and its
     * superclasses, including private methods. A method is left out if an annotated method overrides it. Methods of
     * interfaces are left out too. {@code RegistryServer} finds the same methods.
     */
    private List<ExecutableElement> publishedMethods(TypeElement type) {
        List<ExecutableElement> found = new ArrayList<>();
        for (TypeElement each : TypeCheck.lineage(type)) {
            List<ExecutableElement> own = ElementFilter.methodsIn(each.getEnclosedElements()).stream()
                    .filter(method -> method.getAnnotation(dev.rpcx.Method.class) != null)
                    .filter(method -> found.stream()
                            .noneMatch(lower -> processingEnv.getElementUtils().overrides(lower, method, type)))
                    .toList();
            found.addAll(own);
        }
        return found;
    }

    /** Returns the methods that a type declares or inherits, except those of {@code Object}. */
    private List<ExecutableElement> methods(TypeElement type) {
        TypeElement object = processingEnv.getElementUtils().getTypeElement("java.lang.Object");
        return ElementFilter.methodsIn(processingEnv.getElementUtils().getAllMembers(type)).stream()
                .filter(method -> !object.equals(method.getEnclosingElement()))
                .toList();
    }

    private static String published(ExecutableElement method, dev.rpcx.@Nullable Method marked) {
        return marked == null || marked.value().isEmpty()
                ? method.getSimpleName().toString()
                : marked.value();
    }

    private void checkName(Element at, String where, String name) {
        int bytes = name.getBytes(StandardCharsets.UTF_8).length;
        if (bytes < 1 || bytes > MAX_NAME_BYTES || name.indexOf('\0') >= 0) {
            refuse(at, where + ": published name \"" + name + "\" (expected: 1 to 255 bytes, no NUL)");
        }
    }

    private void method(String typeName, ExecutableElement method) {
        String where = typeName + "." + method.getSimpleName();
        TypeCheck check = types();
        List<? extends VariableElement> parameters = method.getParameters();
        for (VariableElement parameter : parameters) {
            if (check.isPublisher(parameter.asType()) && parameters.size() > 1) {
                refuse(parameter, where + ": a stream beside other parameters (expected: the stream alone)");
                return;
            }
        }
        boolean isStream =
                parameters.size() == 1 && check.isPublisher(parameters.get(0).asType());
        if ((isStream || check.isPublisher(method.getReturnType())) && method.getAnnotation(OneWay.class) != null) {
            refuse(method, where + ": a stream of a one-way method (expected: not one-way)");
            return;
        }
        for (VariableElement parameter : parameters) {
            check.parameter(parameter.asType(), where + "(" + parameter.getSimpleName() + ")", parameter);
        }
        if (!isStream) {
            check.numbers(parameters, where, false);
        }
        check.result(method.getReturnType(), "result of " + where, method);
    }

    /**
     * Writes the index of services to the folder of the compiled classes. A service that an earlier build has compiled,
     * and this build has not, stays in the index as long as its class exists. If the compiler finds the class, the
     * class must also have the annotation {@link RPCXServer} itself, and must not be abstract. If no service is left,
     * the index becomes an empty file. The file is not written if it would not change.
     */
    private void writeIndex() {
        Filer filer = processingEnv.getFiler();
        List<String> before = indexed(filer);
        Set<String> names = new TreeSet<>(services.keySet());
        for (String name : before) {
            TypeElement type = type(name);
            if (type == null ? isOfEarlierBuild(name) : isAnnotatedItself(type) && !isAbstract(type)) {
                names.add(name);
            }
        }
        if (before.equals(List.copyOf(names))) {
            return;
        }
        try {
            FileObject file = filer.createResource(
                    StandardLocation.CLASS_OUTPUT, "", INDEX, services.values().toArray(new Element[0]));
            try (Writer out = file.openWriter()) {
                for (String name : names) {
                    out.write(name + "\n");
                }
            }
        } catch (IOException e) {
            processingEnv
                    .getMessager()
                    .printMessage(Diagnostic.Kind.ERROR, INDEX + ": cannot be written: " + e.getMessage());
        }
    }

    private void writeImage() {
        if (types != null) {
            types.mapped().forEach(type -> image().members(binaryName(type), type));
        }
        try {
            image().write(processingEnv.getFiler(), name -> type(name) != null || isOfEarlierBuild(name));
        } catch (IOException e) {
            processingEnv
                    .getMessager()
                    .printMessage(Diagnostic.Kind.ERROR, image().path() + ": cannot be written: " + e.getMessage());
        }
    }

    /** Returns the nested or top-level type with this binary name; null if the compiler does not find the type. */
    private @Nullable TypeElement type(String binaryName) {
        TypeElement nested = processingEnv.getElementUtils().getTypeElement(binaryName.replace('$', '.'));
        if (nested != null) {
            return nested;
        }
        TypeElement top = processingEnv.getElementUtils().getTypeElement(binaryName);
        return top != null && top.getNestingKind() == NestingKind.TOP_LEVEL ? top : null;
    }

    /**
     * Returns whether an earlier build has compiled a class that is not among the sources of this build, and the class
     * file still exists. The compiler does not find such a class if the folder of the compiled classes is not on the
     * class path. A class whose name begins with the name of one of this build's classes and a dollar sign counts as
     * nested in that class, so the result is false for it.
     */
    private boolean isOfEarlierBuild(String binaryName) {
        for (String name : compiled) {
            if (binaryName.equals(name) || binaryName.startsWith(name + "$")) {
                return false;
            }
        }
        int dot = binaryName.lastIndexOf('.');
        try {
            FileObject file = processingEnv
                    .getFiler()
                    .getResource(
                            StandardLocation.CLASS_OUTPUT,
                            dot < 0 ? "" : binaryName.substring(0, dot),
                            binaryName.substring(dot + 1) + ".class");
            file.openInputStream().close();
            return true;
        } catch (IOException | IllegalArgumentException none) {
            return false;
        }
    }

    private List<String> indexed(Filer filer) {
        try {
            FileObject file = filer.getResource(StandardLocation.CLASS_OUTPUT, "", INDEX);
            try (BufferedReader lines = new BufferedReader(file.openReader(true))) {
                return lines.lines().toList();
            }
        } catch (NoSuchFileException none) {
            return List.of();
        } catch (IOException | IllegalArgumentException notReadable) {
            // usually there is no index yet, since this is the first build; some file managers report a missing file by
            // one of these exceptions
            return List.of();
        }
    }
}
