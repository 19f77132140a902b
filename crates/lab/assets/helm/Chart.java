// helm lint and helm template, of the library: java -cp 'JARS/*' Chart.java lint|template CHART [NAME=VALUE…]
import com.marcnuri.helm.Helm;
import java.nio.file.Path;

class Chart {
    public static void main(String[] args) throws Exception {
        var helm = new Helm(Path.of(args[1]));
        if (args[0].equals("lint")) {
            var result = helm.lint().strict().call();
            result.getMessages().forEach(System.out::println);
            System.exit(result.isFailed() ? 1 : 0);
        }
        var template = helm.template().withName("tollgate").withNamespace("default");
        for (int i = 2; i < args.length; i++) {
            var pair = args[i].split("=", 2);
            template = template.set(pair[0], pair[1]);
        }
        System.out.print(template.call());
    }
}
