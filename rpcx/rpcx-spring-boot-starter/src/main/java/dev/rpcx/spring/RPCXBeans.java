package dev.rpcx.spring;

import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import java.io.IOException;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.BeanClassLoaderAware;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.BeanFactoryAware;
import org.springframework.beans.factory.FactoryBean;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.annotation.AnnotatedBeanDefinition;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.beans.factory.support.AbstractBeanDefinition;
import org.springframework.beans.factory.support.BeanDefinitionRegistry;
import org.springframework.beans.factory.support.RootBeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfigurationPackages;
import org.springframework.boot.context.properties.bind.BindResult;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.context.EnvironmentAware;
import org.springframework.context.ResourceLoaderAware;
import org.springframework.context.annotation.ClassPathScanningCandidateComponentProvider;
import org.springframework.context.annotation.ImportBeanDefinitionRegistrar;
import org.springframework.core.annotation.MergedAnnotation;
import org.springframework.core.annotation.MergedAnnotations;
import org.springframework.core.annotation.MergedAnnotations.SearchStrategy;
import org.springframework.core.env.Environment;
import org.springframework.core.io.ResourceLoader;
import org.springframework.core.type.AnnotationMetadata;
import org.springframework.core.type.classreading.MetadataReader;
import org.springframework.core.type.filter.AnnotationTypeFilter;
import org.springframework.util.ClassUtils;

/**
 * Looks through the application's packages and those of {@code rpcx.base-packages}, and registers a bean for each
 * {@code @RPCXServer} class and each {@code @RPCXClient} interface of which the application has no bean, in whatever
 * way it makes its own beans. Types are compared and not names of classes, since a bean that a method makes has no
 * class name in its definition. The types are those of the application's class loader, which may be another than that
 * of this class, as it is with devtools.
 */
final class RPCXBeans
        implements ImportBeanDefinitionRegistrar,
                BeanClassLoaderAware,
                BeanFactoryAware,
                EnvironmentAware,
                ResourceLoaderAware {
    private ClassLoader classLoader;
    private BeanFactory factory;
    private Environment environment;
    private ResourceLoader resources;

    @SuppressWarnings("NullAway.Init") // Spring sets all fields before it calls registerBeanDefinitions
    RPCXBeans() {}

    @Override
    public void setBeanClassLoader(ClassLoader found) {
        classLoader = found;
    }

    @Override
    public void setBeanFactory(BeanFactory beanFactory) {
        factory = beanFactory;
    }

    @Override
    public void setEnvironment(Environment found) {
        environment = found;
    }

    @Override
    public void setResourceLoader(ResourceLoader found) {
        resources = found;
    }

    @Override
    public void registerBeanDefinitions(AnnotationMetadata importing, BeanDefinitionRegistry registry) {
        Set<String> packages = new LinkedHashSet<>();
        if (AutoConfigurationPackages.has(factory)) {
            packages.addAll(AutoConfigurationPackages.get(factory));
        }
        // the properties are not a bean yet
        BindResult<List<String>> bound =
                Binder.get(environment).bind("rpcx.base-packages", Bindable.listOf(String.class));
        List<String> basePackages = bound.isBound() ? bound.get() : List.of();
        packages.addAll(basePackages);
        if (packages.isEmpty()) {
            return;
        }
        ListableBeanFactory beans = (ListableBeanFactory) factory;
        Set<String> marked = new HashSet<>();
        SortedSet<String> called = new TreeSet<>();
        ClassPathScanningCandidateComponentProvider scanner = scanner(marked, called);
        Map<Class<?>, BeanDefinition> found = new LinkedHashMap<>();
        for (String each : packages) {
            for (BeanDefinition definition : scanner.findCandidateComponents(each)) {
                String name = definition.getBeanClassName();
                if (name != null) {
                    found.putIfAbsent(ClassUtils.resolveClassName(name, classLoader), definition);
                }
            }
        }
        basePackages.forEach(each -> check(each, marked));
        RootBeanDefinition names = new RootBeanDefinition(CalledServices.class);
        names.getConstructorArgumentValues().addIndexedArgumentValue(0, List.copyOf(called));
        registry.registerBeanDefinition(CalledServices.class.getName(), names);
        found.forEach((type, definition) -> {
            if (!hasBean(beans, type)) {
                registry.registerBeanDefinition(type.getName(), type.isInterface() ? proxy(type) : definition);
            }
        });
    }

    /**
     * Checks that there is something in a package that a property names. Its name may be misspelt.
     *
     * @param marked names of all classes and interfaces that were found
     * @throws RPCXStartException if none of them is in the package, or in one below it
     */
    private static void check(String packageName, Set<String> marked) {
        if (marked.stream().noneMatch(name -> name.startsWith(packageName + "."))) {
            throw new RPCXStartException(
                    "rpcx.base-packages: " + packageName + " (expected: a package with @RPCXServer classes or "
                            + "@RPCXClient interfaces, in itself or in one below it)",
                    "Correct or remove the name of the package.",
                    null);
        }
    }

    /**
     * Returns whether the application has a bean of this type. A bean of a subclass of a service's class counts as that
     * service, unless the subclass publishes a service of its own.
     */
    private static boolean hasBean(ListableBeanFactory beans, Class<?> type) {
        for (String name : beans.getBeanNamesForType(type, true, false)) {
            Class<?> known = beans.getType(name, false);
            if (type.isInterface() || known == type || known != null && publisher(known) == type) {
                return true;
            }
        }
        return false;
    }

    /**
     * Returns the class that carries the {@code @RPCXServer} annotation of a bean: the bean's class or a class that it
     * extends; null if there is none.
     */
    private static @Nullable Object publisher(Class<?> bean) {
        return MergedAnnotations.from(bean, SearchStrategy.INHERITED_ANNOTATIONS)
                .get(RPCXServer.class)
                .getSource();
    }

    private static BeanDefinition proxy(Class<?> type) {
        RootBeanDefinition definition = new RootBeanDefinition(ClientFactoryBean.class);
        // the type is given by its name, since generated code may have no access to the type itself
        definition.getConstructorArgumentValues().addIndexedArgumentValue(0, type.getName());
        definition.setAutowireMode(AbstractBeanDefinition.AUTOWIRE_CONSTRUCTOR);
        definition.setAttribute(FactoryBean.OBJECT_TYPE_ATTRIBUTE, type);
        definition.setLazyInit(true);
        return definition;
    }

    /**
     * Returns a scanner that finds {@code @RPCXClient} interfaces and {@code @RPCXServer} classes.
     *
     * @param marked receives the names of all these types, including those that a condition leaves out
     * @param called receives the names of the services of all clients, including clients that a condition leaves out
     */
    private ClassPathScanningCandidateComponentProvider scanner(Set<String> marked, Set<String> called) {
        ClassPathScanningCandidateComponentProvider scanner =
                new ClassPathScanningCandidateComponentProvider(false, environment) {
                    @Override
                    protected boolean isCandidateComponent(MetadataReader read) throws IOException {
                        MergedAnnotations annotations =
                                read.getAnnotationMetadata().getAnnotations();
                        MergedAnnotation<RPCXClient> client = annotations.get(RPCXClient.class);
                        if (client.isDirectlyPresent()) {
                            called.add(client.getString("remoteServerName"));
                        }
                        if (client.isDirectlyPresent() || annotations.isDirectlyPresent(RPCXServer.class)) {
                            marked.add(read.getClassMetadata().getClassName());
                        }
                        return super.isCandidateComponent(read);
                    }

                    @Override
                    protected boolean isCandidateComponent(AnnotatedBeanDefinition found) {
                        AnnotationMetadata type = found.getMetadata();
                        return type.isIndependent() && (type.isInterface() || type.isConcrete());
                    }
                };
        scanner.setResourceLoader(resources);
        scanner.addIncludeFilter(new AnnotationTypeFilter(RPCXClient.class, false));
        scanner.addIncludeFilter(new AnnotationTypeFilter(RPCXServer.class, false));
        return scanner;
    }
}
